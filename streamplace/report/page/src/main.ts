/** The page: reads the document, and shows it. */

import { differences, lossesOf, sentences, throughputsAt } from "./check";
import { comparisonSection, meanTime } from "./comparison";
import { choice, h, put, replace } from "./dom";
import type { ProblemPart, ReportDocument } from "./document";
import { spots } from "./labels";
import { forgetTheme } from "./palette";
import { planSection } from "./plan";
import { counted, shown } from "./text";
import { Workbench } from "./workbench";

const NEEDED: readonly (readonly [string, () => unknown])[] = [
  ["ResizeObserver", () => window.ResizeObserver],
  ["pointer events", () => window.PointerEvent],
  ["rounded rectangles on a canvas", () => CanvasRenderingContext2D.prototype.roundRect],
  ["the replacement of children", () => Element.prototype.replaceChildren],
  ["private views of arrays", () => Float64Array.from],
];

function start(): void {
  const main = document.getElementById("page");
  if (!main) return;
  const missing = NEEDED.filter(([, feature]) => !safely(feature)).map(([name]) => name);
  if (missing.length > 0) {
    explain(main, `This browser lacks ${missing.join(" and ")}, so the report is shown as text.`);
    return;
  }
  const words = document.getElementById("words");
  guarded(main, words, () => {
    const text = document.getElementById("report")?.textContent ?? "";
    show(main, JSON.parse(text) as ReportDocument, words);
  });
}

/** Do something; where that fails, say so above the report in words. */
function guarded(main: HTMLElement, words: HTMLElement | null, act: () => void): void {
  try {
    act();
  } catch (error) {
    const why = error instanceof Error ? ` (${error.message})` : "";
    if (words) main.append(words);
    explain(main, `The interactive report could not be shown${why}; this is its text.`);
  }
}

function safely(feature: () => unknown): unknown {
  try {
    return feature();
  } catch {
    return undefined;
  }
}

function explain(main: HTMLElement, sentence: string): void {
  const notice = document.createElement("p");
  notice.className = "notice";
  notice.textContent = sentence;
  main.insertBefore(notice, main.firstChild);
}

function show(main: HTMLElement, report: ReportDocument, words: HTMLElement | null): void {
  const header = h(
    "header",
    {},
    h("h1", {}, h("bdi", {}, shown(report.title, 160).replace(/ \/s/g, "\u00a0/s"))),
    h("p", { class: "made" }, report.made_by),
  );
  const notes = report.notes.map((note) => h("p", { class: "notice" }, h("bdi", {}, shown(note, 600))));
  replace(main, header, ...notes);
  document.documentElement.classList.add("ready");
  // What is above is seen before the rest is computed.
  requestAnimationFrame(() => window.setTimeout(() => guarded(main, words, () => fill(main, report, words))));
}

function fill(main: HTMLElement, report: ReportDocument, words: HTMLElement | null): void {
  const parts: Node[] = [];
  const problems = report.problems.length > 0 ? new Problems(report.problems) : undefined;
  const open = (problem: number, placer: string): void => problems?.open(problem, placer);
  if (report.plan) parts.push(planSection(report.plan));
  if (report.comparison) parts.push(comparisonSection(report.comparison, open));
  if (problems) parts.push(problems.element);
  if (words) {
    const open = parts.length === 0 ? { open: "" } : {};
    parts.push(h("details", { class: "block words", ...open }, h("summary", {}, "The report in words"), words));
  }
  put(main, ...parts);
  problems?.appear();
  main.setAttribute("data-shown", "");
}

/** One problem at a time, made when it is shown first. */
class Problems {
  readonly element = h("section", { class: "block problems", "aria-label": "Graph and placement" });
  private readonly body = h("div");
  private readonly benches = new Map<number, Workbench>();
  private readonly chooser: HTMLSelectElement;
  private current = 0;

  constructor(private readonly problems: readonly ProblemPart[]) {
    const options = problems.map((problem, i) => {
      const size = counted(problem.operators.name.length, "operator");
      return [String(i), `${shown(problem.name, 50)} · ${size}`] as const;
    });
    this.chooser = choice("Graph", options, (value) => this.open(Number(value)));
    if (problems.length > 1) put(this.element, h("div", { class: "chooser" }, h("h2", {}, "Graph"), this.chooser));
    put(this.element, this.body);
    this.show(0);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      forgetTheme();
      this.bench.restyle();
    });
  }

  appear(): void {
    this.bench.appear();
  }

  open(index: number, placer?: string): void {
    this.show(index);
    this.chooser.value = String(index);
    const { placements } = this.problems[index];
    const chosen = placements.findIndex((placement) => placement.name === placer);
    if (chosen >= 0) this.bench.usePlacement(chosen);
    this.appear();
    if (placer !== undefined) this.element.scrollIntoView({ block: "start" });
  }

  private show(index: number): void {
    this.current = index;
    replace(this.body, this.bench.element);
  }

  private get bench(): Workbench {
    const made = this.benches.get(this.current);
    if (made) return made;
    const bench = new Workbench(this.problems[this.current]);
    this.benches.set(this.current, bench);
    return bench;
  }
}

if (typeof document === "undefined") {
  Object.assign(globalThis, { differences, lossesOf, meanTime, sentences, spots, throughputsAt });
}
else {
  Object.assign(window, { streamplace: { differences } });
  start();
}

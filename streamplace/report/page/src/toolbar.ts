/** What is shown and how, undo and redo, and what a reader takes along. */

import { button, choice, copy, h, put } from "./dom";
import { type PlacementPart, type ProblemPart, columnOf } from "./document";
import type { WhatIf } from "./whatif";

export type Mode = "graph" | "lanes" | "pass";

export interface Bench {
  readonly whatIf: WhatIf | undefined;
  readonly shownPlacement: PlacementPart | undefined;
  setMode(mode: Mode): void;
  setGroup(group: number): void;
  setCompare(on: boolean): void;
  search(text: string): string;
  nextMatch(): void;
  zoom(factor: number): void;
  fit(): void;
}

const GROUPS: Record<string, string> = { units: "Units", subtasks: "Operators", chains: "Chains" };

/** JSON in which a terminal finds nothing but printable characters. */
function ascii(json: string): string {
  return json.replace(/[^\n -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Tuples/s of all sources together. */
function totalRate(problem: ProblemPart): number {
  const { name, rate } = problem.operators;
  return columnOf(rate, name.length).reduce((sum, of) => sum + of, 0);
}

/** A button that a narrow page shows behind "More". */
function extra(...[label, act, attributes]: Parameters<typeof button>): HTMLButtonElement {
  return button(label, act, { ...attributes, class: "extra" });
}

export class Toolbar {
  readonly element = h("div", { class: "toolbar", role: "toolbar", "aria-label": "View and changes" });
  private readonly modes = new Map<Mode, HTMLButtonElement>();
  private readonly field = h("input", { type: "search", placeholder: "Search", "aria-label": "Search operators" });
  private readonly hits = h("span", { class: "soft hits", "aria-live": "polite" });
  private readonly note = h("span", { class: "copied", "aria-live": "polite" });
  private readonly undo = button("Undo", () => this.bench.whatIf?.undo());
  private readonly redo = extra("Redo", () => this.bench.whatIf?.redo());
  private readonly reset = extra("Original", () => this.bench.whatIf?.reset());
  private readonly compare = extra("Compare", () => this.toggle(this.compare, (on) => this.bench.setCompare(on)), {
    "aria-pressed": "false",
  });
  /** Where the page is narrow, the rest of the buttons. */
  private readonly more = button("More", () => this.toggle(this.more, (on) => this.element.classList.toggle("open", on)), {
    class: "more",
    "aria-pressed": "false",
  });

  constructor(
    private readonly problem: ProblemPart,
    private readonly bench: Bench,
  ) {
    put(this.element, this.views(), this.groups(), this.searching(), this.zooming());
    if (problem.placements.length > 0) put(this.element, this.changes());
    put(this.element, this.more);
  }

  showMode(mode: Mode): void {
    for (const [name, element] of this.modes) element.setAttribute("aria-pressed", String(name === mode));
  }

  focusSearch(): void {
    this.field.focus();
  }

  update(): void {
    const { whatIf } = this.bench;
    this.undo.disabled = !whatIf?.undoes;
    this.redo.disabled = !whatIf?.redoes;
    this.reset.disabled = !whatIf?.undoes;
    this.undo.title = whatIf?.undoes ? `Undo: ${whatIf.undoes}` : "";
    this.redo.title = whatIf?.redoes ? `Redo: ${whatIf.redoes}` : "";
  }

  private views(): HTMLElement {
    const group = h("div", { class: "segments", role: "group", "aria-label": "View" });
    const placed = this.problem.placements.length > 0;
    const add = (mode: Mode, label: string): void => {
      const element = button(label, () => this.bench.setMode(mode));
      this.modes.set(mode, element);
      put(group, element);
    };
    add("graph", "Graph");
    if (placed) add("lanes", "Devices");
    if (this.problem.placements.some((placement) => placement.one_pass)) add("pass", "Pass");
    return group;
  }

  private groups(): HTMLElement | undefined {
    const { groups } = this.problem;
    if (groups.length === 0) return undefined;
    const all = this.problem.operators.name.some((name) => /#\d+$/.test(name)) ? "Subtasks" : "All operators";
    const options = groups.map(({ by }, i) => [String(i), GROUPS[by] ?? by] as const);
    const chooser = choice("Boxes", [["-1", all], ...options], (value) => this.bench.setGroup(Number(value)));
    chooser.classList.add("extra");
    return chooser;
  }

  private searching(): HTMLElement {
    this.field.addEventListener("input", () => {
      this.hits.textContent = this.bench.search(this.field.value);
    });
    this.field.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.bench.nextMatch();
    });
    return h("div", { class: "search extra" }, this.field, this.hits);
  }

  private zooming(): HTMLElement {
    return h(
      "div",
      { class: "segments", role: "group", "aria-label": "Zoom" },
      extra("−", () => this.bench.zoom(0.8), { "aria-label": "Zoom out" }),
      extra("+", () => this.bench.zoom(1.25), { "aria-label": "Zoom in" }),
      button("Fit", () => this.bench.fit()),
    );
  }

  private changes(): HTMLElement {
    const group = h("div", { class: "changes" });
    if (this.bench.whatIf || !this.problem.what_if) {
      put(group, this.undo, this.redo, this.reset, this.compare);
    }
    const json = extra("Copy placement", () => void copy(this.json(), this.note));
    const command = extra("Copy command", () => void copy(this.command(), this.note));
    put(group, json, this.problem.command !== undefined && command, this.note);
    return group;
  }

  private toggle(of: HTMLButtonElement, act: (on: boolean) => void): void {
    const on = of.getAttribute("aria-pressed") !== "true";
    of.setAttribute("aria-pressed", String(on));
    act(on);
  }

  /** The placement as streamplace reads it. */
  private json(): string {
    const { operators, devices, name } = this.problem;
    const place = this.bench.whatIf?.state.place ?? this.bench.shownPlacement?.place ?? [];
    const assignment = Object.fromEntries(
      operators.name.map((operator, v) => [operator, devices?.name[place[v]] ?? ""]),
    );
    const given = this.bench.shownPlacement;
    const order = given?.priority ? { queue: given.queue } : {};
    const priority = given?.priority
      ? { priority: Object.fromEntries(operators.name.map((o, v) => [o, given.priority?.[v]])) }
      : {};
    return JSON.stringify({ graph: name, assignment, ...priority, ...order }, null, 2);
  }

  /** A shell command that simulates the placement at the chosen rate. */
  private command(): string {
    const factor = this.bench.whatIf?.state.rate ?? 1;
    const rate = factor === 1 ? "" : ` --rate ${Number((factor * totalRate(this.problem)).toPrecision(12))}`;
    const head = `${this.problem.command ?? ""}${rate} <<'END_OF_PLACEMENT'`;
    return `${head}\n${ascii(this.json())}\nEND_OF_PLACEMENT\n`;
  }
}

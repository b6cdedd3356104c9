/** What is shown and how, undo and redo, and what a reader takes along. */

import { button, choice, copy, h, put } from "./dom";
import { type PlacementPart, type ProblemPart, columnOf } from "./document";
import type { WhatIf } from "./whatif";
import { shown } from "./text";

export type Mode = "graph" | "lanes" | "pass";

export interface Bench {
  readonly whatIf: WhatIf | undefined;
  readonly shownPlacement: PlacementPart | undefined;
  usePlacement(index: number): void;
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

export class Toolbar {
  readonly element = h("div", { class: "toolbar", role: "toolbar", "aria-label": "View and changes" });
  private readonly modes = new Map<Mode, HTMLButtonElement>();
  private readonly field = h("input", { type: "search", placeholder: "Search", "aria-label": "Search operators" });
  private readonly hits = h("span", { class: "soft hits", "aria-live": "polite" });
  private readonly note = h("span", { class: "copied", "aria-live": "polite" });
  private chooser: HTMLSelectElement | undefined;
  private readonly undo = button("Undo", () => this.bench.whatIf?.undo());
  private readonly redo = button("Redo", () => this.bench.whatIf?.redo());
  private readonly reset = button("Original", () => this.bench.whatIf?.reset());
  private readonly compare = button("Compare", () => this.toggleCompare(), { "aria-pressed": "false" });

  constructor(
    private readonly problem: ProblemPart,
    private readonly bench: Bench,
  ) {
    put(this.element, this.views(), this.placements(), this.groups(), this.searching(), this.zooming());
    if (problem.placements.length > 0) put(this.element, this.changes());
  }

  showMode(mode: Mode): void {
    for (const [name, element] of this.modes) element.setAttribute("aria-pressed", String(name === mode));
  }

  focusSearch(): void {
    this.field.focus();
  }

  update(): void {
    const { whatIf, shownPlacement } = this.bench;
    const index = this.problem.placements.findIndex((placement) => placement === shownPlacement);
    if (this.chooser) this.chooser.value = String(index);
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

  private placements(): HTMLElement | undefined {
    const { placements } = this.problem;
    if (placements.length < 2) return undefined;
    const options = placements.map((p, i) => [String(i), shown(p.name)] as const);
    this.chooser = choice("Placement", options, (value) => this.bench.usePlacement(Number(value)));
    return this.chooser;
  }

  private groups(): HTMLElement | undefined {
    const { groups } = this.problem;
    if (groups.length === 0) return undefined;
    const all = this.problem.operators.name.some((name) => /#\d+$/.test(name)) ? "Subtasks" : "All operators";
    const options = groups.map(({ by }, i) => [String(i), GROUPS[by] ?? by] as const);
    return choice("Boxes", [["-1", all], ...options], (value) => this.bench.setGroup(Number(value)));
  }

  private searching(): HTMLElement {
    this.field.addEventListener("input", () => {
      this.hits.textContent = this.bench.search(this.field.value);
    });
    this.field.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.bench.nextMatch();
    });
    return h("div", { class: "search" }, this.field, this.hits);
  }

  private zooming(): HTMLElement {
    return h(
      "div",
      { class: "segments", role: "group", "aria-label": "Zoom" },
      button("−", () => this.bench.zoom(0.8), { "aria-label": "Zoom out" }),
      button("+", () => this.bench.zoom(1.25), { "aria-label": "Zoom in" }),
      button("Fit", () => this.bench.fit()),
    );
  }

  private changes(): HTMLElement {
    const group = h("div", { class: "changes" });
    if (this.bench.whatIf || !this.problem.what_if) {
      put(group, this.undo, this.redo, this.reset, this.compare);
    }
    const json = button("Copy placement", () => void copy(this.json(), this.note));
    const command = button("Copy command", () => void copy(this.command(), this.note));
    if (this.problem.level === "operators") {
      put(group, json, this.problem.command !== undefined && command, this.note);
    }
    return group;
  }

  private toggleCompare(): void {
    const on = this.compare.getAttribute("aria-pressed") !== "true";
    this.compare.setAttribute("aria-pressed", String(on));
    this.bench.setCompare(on);
  }

  /** The placement as streamplace reads it. */
  private json(): string {
    const { operators, devices, name } = this.problem;
    const place = this.bench.whatIf?.state.place ?? this.bench.shownPlacement?.place ?? [];
    const assignment = Object.fromEntries(
      operators.name.map((operator, v) => [operator, devices?.name[place[v]] ?? ""]),
    );
    const given = this.bench.shownPlacement;
    const order = given?.priority && given.one_pass ? { queue: given.one_pass.queue } : {};
    const priority = given?.priority
      ? { priority: Object.fromEntries(operators.name.map((o, v) => [o, given.priority?.[v]])) }
      : {};
    return JSON.stringify({ graph: name, assignment, ...priority, ...order }, null, 2);
  }

  /** A command for a shell that simulates the placement, with the rate that was chosen. */
  private command(): string {
    const factor = this.bench.whatIf?.state.rate ?? 1;
    const rate = factor === 1 ? "" : ` --rate ${Number((factor * totalRate(this.problem)).toPrecision(12))}`;
    const head = `${this.problem.command ?? ""}${rate} <<'END_OF_PLACEMENT'`;
    return `${head}\n${ascii(this.json())}\nEND_OF_PLACEMENT\n`;
  }
}

/** A problem with its placements: graph, lanes, pass, and what if. */

import { firstDifference } from "./check";
import { Compare } from "./compare";
import { Detail } from "./detail";
import { DeviceList, field } from "./devices";
import { h, put, replace } from "./dom";
import type { PlacementPart, ProblemPart } from "./document";
import { Facts } from "./facts";
import { Gantt } from "./gantt";
import { marksOf } from "./marks";
import { type Look } from "./paint";
import { theme } from "./palette";
import { Placements, ranked } from "./placements";
import { type Box, type Scene, arranged, graphScene, groupScene, laneScene } from "./scene";
import { type Situation, type Times, situationOfDocument, timesOfDocument } from "./situation";
import { Stage, heightFor, mostHeight } from "./stage";
import { number, percent, shown } from "./text";
import { Toolbar, type Mode } from "./toolbar";
import { Tray } from "./tray";
import { type Outcome, Verdict } from "./verdict";
import { View } from "./view";
import { WhatIf, timesOf } from "./whatif";

/** Share of the height up to which a graph is flat: it takes all of the width. */
const LOW = 0.66;
const HINT =
  "Arrow keys go from box to box, 1 to 9 move the selected one to that device, D chooses among all, + and − zoom, / searches, Ctrl+Z undoes.";

export class Workbench {
  readonly element = h("section", { class: "workbench" });
  private readonly facts: Facts;
  private readonly off: string;
  private readonly view = new View();
  private readonly stage: Stage;
  private readonly compare: Compare;
  private readonly gantt: Gantt;
  private readonly verdict: Verdict;
  private readonly devices: DeviceList;
  private readonly detail: Detail;
  private readonly toolbar: Toolbar;
  private readonly placements: Placements;
  private readonly tray: Tray;
  private readonly tip = h("div", { class: "tip", hidden: true });
  private readonly live = h("p", { class: "visually-hidden", "aria-live": "polite" });
  private readonly rate = h("div");
  private readonly main = h("div", { class: "main" });
  private readonly top = h("div", { class: "table-top" });
  private width = 0;
  private mode: Mode = "graph";
  private selected = -1;
  private matches: Set<number> | undefined;
  private placement: PlacementPart | undefined;
  private given: Situation | undefined;
  private whatif: WhatIf | undefined;
  private base: Scene;
  private scene: Scene;

  constructor(
    private readonly problem: ProblemPart,
    placement = ranked(problem)[0],
  ) {
    this.facts = new Facts(problem);
    this.off = reasonOff(problem);
    this.base = graphScene(problem);
    this.scene = this.base;
    this.verdict = new Verdict(problem, this.facts);
    this.devices = new DeviceList(this.facts, () => this.whatif);
    this.detail = new Detail(this.facts, {
      move: (device) => this.moveSelected(device),
      choose: (operator) => this.choose(this.scene.boxOf[operator], true),
    });
    this.tray = new Tray(this.facts);
    this.gantt = new Gantt({
      operators: problem.operators.name,
      devices: this.facts.devices,
      times: () => this.times,
      place: () => this.situation?.place ?? [],
      selected: () => this.scene.boxes[this.selected]?.operators[0] ?? -1,
      select: (v) => this.choose(v < 0 ? -1 : this.scene.boxOf[v], false),
    });
    this.stage = new Stage(this.scene, this.view, {
      label: `Graph of ${number(problem.operators.name.length)} operators. ${HINT}`,
      look: (scene) => this.look(scene, this.situation),
      select: (b) => this.choose(b, false),
      selected: () => this.selected,
      hover: (b, x, y) => this.hover(b, x, y),
      ...(this.off ? {} : { drag: this.dragging() }),
      key: (event) => this.key(event),
    });
    this.compare = new Compare(this.view, (scene) =>
      this.look(scene, this.given),
    );
    this.toolbar = new Toolbar(problem, this);
    this.placements = new Placements(problem, (index) => this.usePlacement(index));
    this.build();
    if (problem.placements.length > 0) this.usePlacement(placement);
    else this.refresh();
    this.setMode("graph");
  }

  /** Called when the element is in the page, and whenever it may have another size. */
  appear(): void {
    this.fitStage();
    this.stage.redraw();
  }

  restyle(): void {
    this.stage.redraw();
    this.compare.redraw();
    this.gantt.draw();
  }

  usePlacement(index: number): void {
    this.placement = this.problem.placements[index];
    this.given = situationOfDocument(this.placement);
    this.whatif = undefined;
    this.facts.change(1, undefined);
    if (!this.off) {
      this.whatif = new WhatIf(this.problem, this.placement);
      this.whatif.onChange(() => this.changed());
    }
    this.placements.show(this.placement);
    if (this.mode === "lanes") this.relay(true);
    this.refresh();
  }

  setMode(mode: Mode): void {
    this.mode = mode;
    this.toolbar.showMode(mode);
    this.main.classList.toggle("passing", mode === "pass");
    this.gantt.element.hidden = mode !== "pass";
    if (mode === "pass") this.gantt.show();
    else this.relay(true);
  }

  setGroup(group: number): void {
    const groups = this.problem.groups[group];
    this.base = groups ? groupScene(this.problem, groups) : graphScene(this.problem);
    this.choose(-1, false);
    this.relay(true);
  }

  search(text: string): string {
    const wanted = text.trim().toLowerCase();
    const hits = this.scene.boxes.flatMap((box, b) => {
      const names = [box.name, ...box.operators.map((v) => this.problem.operators.name[v])];
      return names.some((name) => name.toLowerCase().includes(wanted)) ? [b] : [];
    });
    this.matches = wanted ? new Set(hits) : undefined;
    this.stage.redraw();
    return wanted ? `${number(hits.length)} of ${number(this.scene.boxes.length)}` : "";
  }

  nextMatch(): void {
    const hits = [...(this.matches ?? [])];
    if (hits.length === 0) return;
    this.choose(hits.find((b) => b > this.selected) ?? hits[0], true);
  }

  setCompare(on: boolean): void {
    this.compare.element.hidden = !on;
    this.compare.table.hidden = !on;
    this.main.classList.toggle("comparing", on);
    this.refresh();
    this.relay(true);
  }

  zoom(factor: number): void {
    if (this.mode === "pass") this.gantt.zoom(factor);
    else this.stage.zoom(factor);
  }

  fit(): void {
    if (this.mode === "pass") this.gantt.show();
    else this.fitStage();
  }

  get whatIf(): WhatIf | undefined {
    return this.whatif;
  }

  get shownPlacement(): PlacementPart | undefined {
    return this.placement;
  }

  /** Let the graph fill its card: below it, or beside it, is what else there is. */
  private fitStage(): void {
    const { top, base } = this;
    const flat = !(heightFor(arranged(base, top.clientWidth, mostHeight()), top.clientWidth) > LOW * mostHeight());
    top.classList.toggle("flat", flat);
    this.lay();
    this.stage.fit();
    this.compare.resize(this.stage.element.clientHeight);
  }

  private get situation(): Situation | undefined {
    if (this.whatif) return this.whatif.situation;
    return this.given;
  }

  private get times(): Times | undefined {
    return timesOf(this.whatif, this.placement);
  }

  private build(): void {
    const { problem } = this;
    const now = h("div", { class: "now" }, h("p", { class: "caption" }, "Now"), this.stage.element);
    const stages = h("div", { class: "stages" }, this.compare.element, now);
    put(this.main, stages, this.gantt.element, this.compare.table, this.tray.element, this.tip);
    const placed = this.facts.devices.length > 0;
    const side = placed && h("aside", { class: "side", "aria-label": "Devices" }, this.devices.element);
    const under = h("div", { class: "under" }, this.detail.element, placed && this.rate);
    put(this.top, this.main, side, under);
    this.top.classList.toggle("alone", !placed);
    new ResizeObserver(() => {
      if (this.top.clientWidth === this.width) return;
      this.width = this.top.clientWidth;
      this.fitStage();
    }).observe(this.top);
    const why = this.off && h("p", { class: "notice" }, this.off);
    put(
      this.element,
      problem.placements.length > 1 && this.placements.element,
      problem.placements.length > 0 && this.verdict.element,
      why,
      this.toolbar.element,
      this.top,
      h("p", { class: "hint keys" }, HINT),
      this.live,
    );
    this.compare.element.hidden = true;
    this.gantt.element.hidden = true;
  }

  private look(scene: Scene, situation: Situation | undefined): Look {
    const { problem, facts } = this;
    return {
      scene,
      theme: theme(),
      situation,
      devices: facts.devices,
      share: (v) => (situation ? facts.share(v, situation.place[v]) : 0),
      traffic: facts.traffic,
      mostTraffic: facts.mostTraffic,
      selected: this.selected,
      matches: this.matches,
      focused: document.activeElement === this.stage.element,
      ...marksOf(problem, facts, situation, this.placement, situation === this.situation && this.whatif),
      source: problem.streams.source,
      target: problem.streams.target,
    };
  }

  /** The scene of a placement in the window that there is. */
  private sceneOf(place: ArrayLike<number> | undefined): Scene {
    const [w, h] = [this.stage.element.clientWidth, mostHeight()];
    if (this.mode === "lanes" && place) return laneScene(this.base, place, this.facts.devices, w, h);
    return arranged(this.base, w, h);
  }

  /** Lay out anew where boxes have moved. */
  private relay(fit: boolean): void {
    this.lay();
    if (fit) requestAnimationFrame(() => this.fitStage());
  }

  private lay(): void {
    this.scene = this.sceneOf(this.situation?.place);
    this.stage.show(this.scene);
    if (!this.compare.element.hidden) this.compare.show(this.sceneOf(this.placement?.place));
  }

  private changed(): void {
    const { whatif } = this;
    if (whatif?.rescaled) this.facts.change(whatif.state.rate, whatif.state.speed);
    this.refresh();
    if (this.mode === "lanes") this.relay(false);
  }

  /** Show what has changed, but not where boxes are. */
  private refresh(): void {
    const { situation, placement } = this;
    if (situation && placement) {
      this.devices.update(situation);
      const before = this.whatif?.changed ? this.before(placement) : undefined;
      this.verdict.show(placement, this.outcome(situation), before);
      if (this.whatif?.agrees === false) this.verdict.warn();
      if (!this.compare.element.hidden) {
        this.compare.describe(this.facts, this.given ?? situation, situation);
      }
    }
    this.showRate();
    this.detail.show(this.box, situation, this.whatif);
    this.toolbar.update();
    this.stage.redraw();
    if (this.mode === "pass") this.gantt.show();
  }

  private outcome(situation: Situation): Outcome {
    const { whatif } = this;
    return { situation, times: this.times, rate: whatif?.state.rate ?? 1, cost: whatif?.cost };
  }

  private before(placement: PlacementPart): Outcome {
    const situation = this.given ?? situationOfDocument(placement);
    return { situation, times: timesOfDocument(placement), rate: 1, cost: this.whatif?.originalCost };
  }

  private showRate(): void {
    const { whatif } = this;
    if (!whatif || this.rate.contains(document.activeElement)) return;
    const total = this.facts.totalRate;
    const input = field("All sources, tuples/s", total * whatif.state.rate, 0, (value) => {
      if (value > 0) whatif.setRate(value / total);
    });
    replace(this.rate, h("section", { class: "panel" }, h("h3", {}, "Rate"), input));
  }

  private get box(): Box | undefined {
    return this.scene.boxes[this.selected];
  }

  private choose(b: number, reveal: boolean): void {
    this.selected = b;
    this.detail.show(this.box, this.situation, this.whatif);
    this.stage.redraw();
    this.compare.redraw();
    if (this.mode === "pass") this.gantt.draw();
    if (reveal && b >= 0) this.stage.reveal(b);
    if (this.box) this.say(this.describe(this.box));
  }

  private describe(box: Box): string {
    const { situation, facts } = this;
    if (!situation) return shown(box.name);
    const device = situation.place[box.operators[0]];
    const share = box.operators.reduce((sum, v) => sum + facts.share(v, situation.place[v]), 0);
    return `${shown(box.name)}, on ${facts.device(device)}, ${percent(share)} of its CPU`;
  }

  private moveSelected(device: number): void {
    if (this.box) this.move(this.box, device);
  }

  private move(box: Box, device: number): void {
    const { whatif, facts } = this;
    if (!whatif || device < 0 || device >= facts.devices.length) return;
    if (box.operators.every((v) => whatif.state.place[v] === device)) return;
    const why = whatif.forbidden(box.operators, device);
    if (why) {
      this.say(why);
      this.tray.warn(why);
      return;
    }
    whatif.move(box.operators, device, `${shown(box.name, 24)} to ${facts.device(device)}`);
    const { situation } = whatif;
    this.say(
      `${shown(box.name)} is on ${facts.device(device)}. Throughput ${percent(situation.throughput)}. ${facts.sentence(situation)}`,
    );
  }

  private say(words: string): void {
    this.live.textContent = words;
  }

  private dragging(): NonNullable<ConstructorParameters<typeof Stage>[2]["drag"]> {
    let dragged = -1;
    return {
      begin: (b) => {
        dragged = b;
        this.choose(b, false);
        const box = this.scene.boxes[b];
        if (this.whatif) this.tray.open(box, this.whatif);
      },
      over: (device) => this.tray.over(device),
      end: (device) => {
        this.tray.close();
        const box = this.scene.boxes[dragged];
        if (box && device >= 0) this.move(box, device);
      },
    };
  }

  private hover(b: number, x: number, y: number): void {
    const box = this.scene.boxes[b];
    this.tip.hidden = !box;
    if (!box) return;
    replace(this.tip, h("bdi", {}, this.describe(box)));
    this.tip.style.left = `${x + 14}px`;
    this.tip.style.top = `${y + 18}px`;
  }

  private key(event: KeyboardEvent): boolean {
    const command = event.ctrlKey || event.metaKey;
    if (command && event.key.toLowerCase() === "z") {
      if (event.shiftKey) this.whatif?.redo();
      else this.whatif?.undo();
      return true;
    }
    if (command && event.key.toLowerCase() === "y") this.whatif?.redo();
    else if (command || event.altKey) return false;
    else if (/^[1-9]$/.test(event.key)) this.moveSelected(Number(event.key) - 1);
    else if (event.key === "d" && this.box && this.whatif) this.detail.select.focus();
    else if (event.key === "/") this.toolbar.focusSearch();
    else return false;
    return true;
  }
}

/** Reason why nothing can be moved, as a sentence; "" if something can. */
function reasonOff(problem: ProblemPart): string {
  const sentence = (why: string): string => `Nothing can be moved here: ${why.replace(/\.$/, "")}.`;
  if (problem.what_if) return sentence(problem.what_if);
  if (problem.placements.length === 0) return sentence("there is no placement");
  try {
    const differs = firstDifference(problem);
    return differs ? sentence(`the page computes another value for ${differs} than Python`) : "";
  } catch {
    return sentence("the page cannot compute this problem");
  }
}

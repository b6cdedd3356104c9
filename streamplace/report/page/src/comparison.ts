/** A comparison of placers: summary, results by graph, and how values and times are spread. */

import { chart, spread } from "./chart";
import { choice, h, put, replace } from "./dom";
import type { ComparedPart, ComparisonPart, PairedPart } from "./document";
import { type Cell, NOTHING, sortable } from "./table";
import { counted, number, percent, seconds, shown } from "./text";

/** Show a problem of the page, and the placement of a placer. */
export type Open = (problem: number, placer: string) => void;

export function comparisonSection(part: ComparisonPart, open: Open): HTMLElement {
  const body = h("div", { class: "stack" });
  const show = (result: ComparedPart): void =>
    replace(
      body,
      summary(part, result),
      aliases(part),
      plots(result),
      byGraph(part, result, open),
    );
  const element = h("section", { class: "block" }, h("h2", {}, "Comparison"));
  if (part.results.length > 1) {
    const options = part.results.map((result, i) => [String(i), titleOf(result)] as const);
    put(element, choice("Results", options, (value) => show(part.results[Number(value)])));
  }
  put(element, body, failures(part));
  if (part.results.length > 0) show(part.results[0]);
  return element;
}

function titleOf(result: ComparedPart): string {
  const rate = result.rate === null ? "" : ` at ${number(result.rate)} tuples/s`;
  return `${result.objective.name}${rate}`;
}

function name(placer: string): string {
  return shown(placer, 60);
}

function format(result: ComparedPart): (value: number) => string {
  const { name: objective, unit } = result.objective;
  if (objective === "throughput") return percent;
  if (unit === "s") return seconds;
  return (value) => `${number(value)}${unit ? ` ${unit}` : ""}`;
}

/** Values of a placer on the graphs that it placed. */
function valuesOf(result: ComparedPart, p: number): number[] {
  return result.values[p].filter((value): value is number => value !== null);
}

/** Mean milliseconds of a placer, of the graphs that it placed. */
export function meanTime({ values, milliseconds }: Pick<ComparedPart, "values" | "milliseconds">, p: number): number {
  return mean(milliseconds[p].filter((_, g) => values[p][g] !== null));
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Share of graphs on which a placer is as good as the best of all, or as the proven optimum. */
function shareBest(result: ComparedPart, p: number): number {
  const sign = result.objective.sense === "max" ? 1 : -1;
  let count = 0;
  result.values[p].forEach((value, g) => {
    const best = Math.max(...result.values.map((row) => (row[g] === null ? -Infinity : sign * (row[g] ?? 0))));
    if (value !== null && sign * value >= best - 1e-9 * Math.abs(best)) count++;
  });
  return count / Math.max(1, result.values[p].length);
}

/** Values, distance to the optimum, and difference from the reference, of every placer. */
function summary(part: ComparisonPart, result: ComparedPart): HTMLElement {
  const form = format(result);
  const sign = result.objective.sense === "max" ? 1 : -1;
  const means = result.rows.map(({ mean: value }) => value ?? NaN);
  const best = Math.max(...means.filter((value) => !Number.isNaN(value)).map((value) => sign * value));
  const of = sign > 0 ? percent : (value: number) => `${number(value)} ×`;
  const compared = result.rows.some(({ paired }) => paired && Object.hasOwn(paired, part.reference));
  const rows = result.placers.map((placer, p): Cell[] => {
    const row = result.rows[p];
    const time = (row.ms_per_graph ?? NaN) / 1000;
    return [
      { text: name(placer) },
      { ...cell(means[p], form), best: sign * means[p] >= best - 1e-12 },
      cell(row.share_of_optimum ?? NaN, of),
      cell(row.reached ?? NaN, percent),
      cell(shareBest(result, p), percent),
      ...(compared ? against(row.paired?.[part.reference]) : []),
      cell(time, seconds),
    ];
  });
  const rival = name(part.reference);
  const wins = `Against ${rival}: better / equal / worse`;
  const statistics = compared ? [wins, "Sign test p", "Rank test p", "Ratio", "95 % interval"] : [];
  const graphs = Math.max(part.graphs.length, ...result.rows.map((row) => row.graphs ?? 0));
  const bestOn = graphs > part.graphs.length ? `Best on, of the first ${number(part.graphs.length)}` : "Best on";
  const head = ["Placer", "Mean", "Of optimum", "Optimal", bestOn, ...statistics, "Time"];
  const caption = `${titleOf(result)}, ${counted(graphs, "graph")}${provenWords(graphs, result)}`;
  return sortable({ caption, head, rows });
}

/** How many optima are proven, and what that means for the columns. */
function provenWords(graphs: number, result: ComparedPart): string {
  const proven = Math.max(0, ...result.rows.map((row) => row.proven ?? 0));
  if (proven === 0) return "; no optimum is proven";
  if (proven >= graphs) return "; all optima are proven";
  return `; of optimum and optimal: over the ${number(proven)} with a proven optimum`;
}

/** Wins, both tests and ratio of a placer against the reference, on the same graphs. */
function against(pair: PairedPart | undefined): Cell[] {
  const dash: Cell = { text: NOTHING };
  if (!pair) return [dash, dash, dash, dash, dash];
  const { better, equal, worse, ratio, interval } = pair;
  return [
    { text: `${better} / ${equal} / ${worse}`, value: better - worse },
    probability(pair.sign_test),
    probability(pair.signed_rank_test),
    ratio === null ? dash : { text: ratio.toFixed(4), value: ratio },
    interval === null
      ? dash
      : { text: `${interval[0].toFixed(4)} to ${interval[1].toFixed(4)}`, value: interval[0] },
  ];
}

function probability(p: number): Cell {
  return { text: p < 1e-4 ? "< 0.0001" : String(Number(p.toPrecision(2))), value: p };
}

/** What the aliases in the tables stand for. */
function aliases(part: ComparisonPart): HTMLElement | undefined {
  const used = Object.entries(part.aliases);
  if (used.length === 0) return undefined;
  const items = used.map(([alias, spec]) => h("li", {}, h("bdi", {}, `${name(alias)}: ${shown(spec, 300)}`)));
  return h("ul", { class: "hint aliases", "aria-label": "Aliases" }, ...items);
}

function cell(value: number, form: (value: number) => string): Cell {
  return Number.isNaN(value) ? { text: NOTHING } : { text: form(value), value };
}

function plots(result: ComparedPart): HTMLElement {
  const { objective } = result;
  const unit = objective.unit ? ` (${objective.unit})` : "";
  const rows = result.placers.map((placer, p) => ({
    name: name(placer),
    values: valuesOf(result, p),
  }));
  const placed = result.placers.flatMap((_, p) => (valuesOf(result, p).length > 0 ? [p] : []));
  const points = placed.map(
    (p) => [Math.max(1e-3, meanTime(result, p)), mean(valuesOf(result, p))] as const,
  );
  return h(
    "div",
    { class: "charts" },
    spread("Values on all graphs: quartiles and medians", `${objective.name}${unit}`, rows),
    chart(
      { title: "Quality against time", x: "mean time per graph (ms)", y: `mean ${objective.name}${unit}`, logX: true, free: true },
      [{ name: "placers", kind: "points", points, labels: placed.map((p) => rows[p].name) }],
    ),
  );
}

function byGraph(part: ComparisonPart, result: ComparedPart, open: Open): HTMLElement {
  const form = format(result);
  const sign = result.objective.sense === "max" ? 1 : -1;
  const known = result.optimum.some((value) => value !== null);
  const rows = part.graphs.map((graph, g): Cell[] => {
    const problem = part.problem[g];
    const values = result.values.map((row) => row[g]);
    const best = Math.max(...values.map((value) => (value === null ? -Infinity : sign * value)));
    const opened = problem === null ? {} : { open: () => open(problem, result.placers[0]) };
    const cells = values.map((value, p): Cell =>
      value === null
        ? { text: NOTHING }
        : {
            ...cell(value, form),
            best: sign * value >= best - 1e-9 * Math.abs(best),
            ...(problem === null ? {} : { open: () => open(problem, result.placers[p]) }),
          },
    );
    const optimum = result.optimum[g];
    const last: Cell[] = known ? [optimum === null ? { text: NOTHING } : cell(optimum, form)] : [];
    return [{ text: shown(graph, 40), ...opened }, ...cells, ...last];
  });
  const head = ["Graph", ...result.placers.map((p) => name(p)), ...(known ? ["Optimum"] : [])];
  return sortable({ caption: "Results by graph; the best of a row stand out", head, rows, filter: true });
}

function failures(part: ComparisonPart): HTMLElement | undefined {
  const entries = Object.entries(part.failures);
  if (entries.length === 0) return undefined;
  const items = entries.map(([placer, why]) =>
    h("li", {}, h("bdi", {}, `${name(placer)}: ${shown(why, 300)}`)),
  );
  return h("div", { class: "notice" }, h("p", {}, "These did not run:"), h("ul", {}, ...items));
}

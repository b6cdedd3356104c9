/** Tables that can be sorted by any column and filtered by a text. */

import { button, h, put, replace } from "./dom";
import { counted } from "./text";

export interface Cell {
  readonly text: string;
  /** By what the column is sorted; the text where absent. */
  readonly value?: number;
  readonly open?: () => void;
  readonly best?: boolean;
}

export interface TableOptions {
  readonly caption: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly Cell[])[];
  /** Whether there is a field by which rows are filtered. */
  readonly filter?: boolean;
}

/** Rows of a table that can be filtered: at first, and at most. */
const FIRST = 25;
const MAX_ROWS = 500;
/** Characters above which a name or a label is broken, or stands on a line of its own. */
const LONG = 19;
/** Text of a cell without a value. */
export const NOTHING = "–";

export function sortable(options: TableOptions): HTMLElement {
  let column = -1;
  let falling = false;
  let wanted = "";
  let most = options.filter ? FIRST : MAX_ROWS;
  const body = h("tbody");
  const rest = h("p", { class: "hint", "aria-live": "polite" });
  const all = button("", () => {
    most = MAX_ROWS;
    fill();
  });
  const numeric = options.head.map(
    (_, i) =>
      options.rows.some((row) => row[i]?.value !== undefined) ||
      options.rows.every((row) => row[i]?.text === NOTHING),
  );
  const heads = options.head.map((name, i) => {
    const sort = h("button", { type: "button", class: "sort" }, name);
    const cell = h("th", { scope: "col", "aria-sort": "none" }, sort);
    cell.classList.toggle("number", numeric[i]);
    cell.classList.toggle("long", name.length > LONG);
    sort.addEventListener("click", () => {
      falling = column === i ? !falling : numeric[i];
      column = i;
      heads.forEach((head) => head.setAttribute("aria-sort", "none"));
      cell.setAttribute("aria-sort", falling ? "descending" : "ascending");
      fill();
    });
    return cell;
  });
  const table = h("table", {}, h("caption", {}, options.caption), h("thead", {}, h("tr", {}, ...heads)), body);
  const scroll = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": options.caption }, table);
  const element = h("div", { class: "data" });
  if (options.filter) put(element, filter((text) => {
    wanted = text;
    fill();
  }, options.caption));
  put(element, scroll, rest, all);
  fill();
  listedWhereTooWide(element, scroll, table);
  return element;

  function fill(): void {
    const rows = options.rows.filter(
      (row) => !wanted || row.some((cell) => cell.text.toLowerCase().includes(wanted)),
    );
    if (column >= 0) rows.sort((a, b) => (falling ? -1 : 1) * order(a[column], b[column], falling));
    replace(body, ...rows.slice(0, most).map((row) => rowElement(row, options.head, numeric)));
    const more = rows.length - Math.max(most, MAX_ROWS);
    rest.textContent = more > 0 ? `${counted(more, "row")} more; filter to see them.` : "";
    all.hidden = rows.length <= most || most === MAX_ROWS;
    all.textContent = `Show ${rows.length > MAX_ROWS ? MAX_ROWS : `all ${rows.length}`} rows`;
  }
}

function order(a: Cell | undefined, b: Cell | undefined, falling: boolean): number {
  const missing = falling ? -Infinity : Infinity;
  if (a?.value !== undefined || b?.value !== undefined) {
    const [x, y] = [a?.value ?? missing, b?.value ?? missing];
    return x < y ? -1 : x > y ? 1 : 0;
  }
  const [x, y] = [a?.text ?? "", b?.text ?? ""];
  return x < y ? -1 : x > y ? 1 : 0;
}

/** Show rows as lists of their cells where the table is wider than its place. */
function listedWhereTooWide(element: Element, scroll: Element, table: Element): void {
  let last = 0;
  new ResizeObserver(([entry]) => {
    const { width } = entry.contentRect;
    if (width === last || width === 0) return;
    last = width;
    element.classList.remove("listed");
    element.classList.toggle("listed", table.scrollWidth > scroll.clientWidth + 1);
  }).observe(scroll);
}

function rowElement(row: readonly Cell[], head: readonly string[], numeric: readonly boolean[]): HTMLElement {
  const cells = row.map((cell, i) => {
    const long = i === 0 ? cell.text.length > LONG : head[i].length + cell.text.length >= LONG;
    const classes = [numeric[i] && "number", cell.best && "best", long && "long"].filter(Boolean);
    const content = cell.open
      ? h("button", { type: "button", class: "link" }, h("bdi", {}, cell.text))
      : h("bdi", {}, cell.text);
    if (cell.open) content.addEventListener("click", cell.open);
    const attributes = { class: classes.join(" ") || null, "data-label": i === 0 ? null : head[i] };
    return i === 0 ? h("th", { scope: "row", ...attributes }, content) : h("td", attributes, content);
  });
  return h("tr", {}, ...cells);
}

function filter(act: (text: string) => void, caption: string): HTMLElement {
  const input = h("input", { type: "search", placeholder: "Filter", "aria-label": `Filter: ${caption}` });
  input.addEventListener("input", () => act(input.value.trim().toLowerCase()));
  return input;
}

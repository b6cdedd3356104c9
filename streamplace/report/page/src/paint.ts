/** How a scene looks: devices by colour and number, streams by load, the bottleneck marked. */

import type { LimitPart } from "./document";
import { FULL } from "./facts";
import { ON_DEVICE, type Theme, deviceColour, mixed, patternOf, tint } from "./palette";
import type { Pen } from "./pen";
import type { Box, Line, Scene } from "./scene";
import type { Situation } from "./situation";
import { fitting, percent, shown } from "./text";

export interface Look {
  readonly scene: Scene;
  readonly theme: Theme;
  readonly situation: Situation | undefined;
  readonly devices: readonly string[];
  /** Share of its device that every operator takes, and bytes per second of every stream. */
  readonly share: (v: number) => number;
  readonly traffic: ArrayLike<number>;
  readonly mostTraffic: number;
  /** Box that is selected, boxes that a search names, and the box that is dragged; else -1. */
  readonly selected: number;
  readonly matches: ReadonlySet<number> | undefined;
  readonly focused: boolean;
  /** Operators and streams that Python marks as the limit of another objective. */
  readonly marked: ReadonlySet<number>;
  readonly markedStreams: ReadonlySet<number>;
  /** Whether the full resource limits; otherwise only marked ones do. */
  readonly byLoad: boolean;
  readonly source: ArrayLike<number>;
  readonly target: ArrayLike<number>;
}

export interface Visible {
  readonly x: number;
  readonly y: number;
  readonly w: number;
  readonly h: number;
  /** Pixels per unit. */
  readonly scale: number;
}

const STRIP = 26;
/** Pixels per unit below which a box is a spot of colour without a name. */
export const MIN_DETAILED = 0.3;

export function paint(pen: Pen, look: Look, view: Visible): void {
  paintLanes(pen, look, view);
  const lines = look.scene.lines.filter((line) => meets(look.scene, line, view));
  const detailed = view.scale >= MIN_DETAILED && lines.length < 3000;
  const limits = lines.filter((line) => isLimit(look, line));
  for (const line of lines) if (!isLimit(look, line)) paintLine(pen, look, line, detailed, view);
  for (const line of limits) paintLine(pen, look, line, detailed, view);
  look.scene.boxes.forEach((box, b) => {
    if (!inside(look.scene, box, view)) return;
    if (view.scale < MIN_DETAILED) paintDot(pen, look, box, b, view);
    else paintBox(pen, look, box, b);
  });
}

function inside(scene: Scene, box: Box, view: Visible): boolean {
  return (
    box.x + scene.w >= view.x &&
    box.x - scene.w <= view.x + view.w &&
    box.y + scene.h >= view.y &&
    box.y - scene.h <= view.y + view.h
  );
}

function meets(scene: Scene, line: Line, view: Visible): boolean {
  const [a, b] = [scene.boxes[line.from], scene.boxes[line.to]];
  let [left, right] = [Math.min(a.x, b.x) - scene.w, Math.max(a.x, b.x) + scene.w];
  let [top, bottom] = [Math.min(a.y, b.y) - scene.h, Math.max(a.y, b.y) + scene.h];
  for (let i = 0; i < line.bends.length; i += 2) {
    [left, right] = [Math.min(left, line.bends[i]), Math.max(right, line.bends[i])];
    [top, bottom] = [Math.min(top, line.bends[i + 1]), Math.max(bottom, line.bends[i + 1])];
  }
  return right >= view.x && left <= view.x + view.w && bottom >= view.y && top <= view.y + view.h;
}

function paintLanes(pen: Pen, look: Look, view: Visible): void {
  const { theme, scene, situation } = look;
  for (const lane of scene.lanes) {
    if (lane.y > view.y + view.h || lane.y + lane.height < view.y) continue;
    const colour = deviceColour(lane.device);
    const limits = isDeviceLimit(situation?.bottleneck, lane.device);
    pen.rect(0, lane.y, scene.width, lane.height, 6, mixed(theme.paper, colour, 0.1));
    pen.rect(0, lane.y, 6, lane.height, 3, colour);
    if (view.scale < 0.2) continue;
    const name = fitting(look.devices[lane.device], 112, 6.6);
    pen.text(16, lane.y + 16, `${lane.device + 1}  ${name}`, 12, theme.ink, true);
    if (situation && lane.height >= 40) {
      const load = situation.device(lane.device);
      pen.text(16, lane.y + 33, `${limits ? "limit" : "CPU"} ${percent(load)}`, 11, limits ? theme.limit : theme.soft);
    }
  }
}

/** Ends and bends of a line, from the edge of a box to the edge of the other. */
export function route(scene: Scene, line: Line): number[] {
  const [a, b] = [scene.boxes[line.from], scene.boxes[line.to]];
  if (scene.down) return [a.x, a.y + scene.h / 2, ...line.bends, b.x, b.y - scene.h / 2];
  return [a.x + scene.w / 2, a.y, ...line.bends, b.x - scene.w / 2, b.y];
}

function paintLine(pen: Pen, look: Look, line: Line, detailed: boolean, view: Visible): void {
  const { scene, theme } = look;
  const touches = line.from === look.selected || line.to === look.selected;
  const load = loadOf(look, line);
  const limit = isLimit(look, line);
  const remote = load >= 0;
  const faint = detailed ? 1 : 0.65;
  const colour = limit
    ? theme.limit
    : touches
      ? theme.accent
      : remote
        ? mixed(theme.paper, theme.ink, (0.4 + 0.3 * Math.min(1, load)) * faint)
        : mixed(theme.paper, theme.ink, (theme.dark ? 0.3 : 0.24) * faint);
  const traffic = line.streams.reduce((sum, e) => sum + look.traffic[e], 0);
  const wide = Math.log1p(traffic) / Math.log1p(Math.max(1, look.mostTraffic));
  const width = (remote ? 1 + 3 * wide : 1 + wide) * (limit ? 1.5 : 1);
  const points = route(scene, line);
  const least = 0.6 / view.scale;
  if (!detailed) {
    pen.line(points, { colour, width: Math.max(width * 0.7, least) });
    return;
  }
  const end = points.length - 2;
  const head = 5 + width;
  const down = scene.down ?? false;
  pen.arrow(points[end], points[end + 1], head, colour, down);
  points[down ? end + 1 : end] -= head * 0.8;
  pen.curve(points, { colour, width: Math.max(width, least) }, down);
}

/** Largest load of the links that a line uses; -1 within a device. */
function loadOf(look: Look, line: Line): number {
  const { situation, source, target } = look;
  if (!situation) return -1;
  let load = -1;
  for (const e of line.streams) {
    const [a, b] = [situation.place[source[e]], situation.place[target[e]]];
    if (a !== b) load = Math.max(load, situation.link(a, b));
  }
  return load;
}

function isLimit(look: Look, line: Line): boolean {
  if (line.streams.some((e) => look.markedStreams.has(e))) return true;
  if (!look.byLoad) return false;
  const limit = look.situation?.bottleneck;
  if (!limit || limit.load <= FULL || limit.kind === "device" || limit.kind === "core") return false;
  return line.streams.some((e) => {
    const a = look.situation?.place[look.source[e]];
    const b = look.situation?.place[look.target[e]];
    if (a === b) return false;
    if (limit.kind === "link") return a === limit.device && b === limit.peer;
    return limit.kind === "egress" ? a === limit.device : b === limit.device;
  });
}

/** Whether the CPU of a device is what limits. */
function isDeviceLimit(limit: LimitPart | undefined, device: number): boolean {
  return limit?.kind === "device" && limit.load > FULL && limit.device === device;
}

interface Ink {
  readonly device: number;
  readonly colour: string;
  readonly limits: boolean;
  readonly dim: boolean;
}

function inkOf(look: Look, box: Box, b: number): Ink {
  const { situation, theme } = look;
  const dim = look.matches !== undefined && !look.matches.has(b);
  if (!situation) {
    return { device: -1, colour: mixed(theme.paper, theme.accent, 0.35), limits: false, dim };
  }
  const device = situation.place[box.operators[0]];
  const several = box.operators.some((v) => situation.place[v] !== device);
  const limits =
    box.operators.some((v) => look.marked.has(v)) ||
    (look.byLoad && !several && isDeviceLimit(situation.bottleneck, device));
  const colour = several ? mixed(theme.paper, theme.ink, 0.25) : deviceColour(device);
  return { device: several ? -2 : device, colour, limits, dim };
}

function paintDot(pen: Pen, look: Look, box: Box, b: number, view: Visible): void {
  const { w, h } = look.scene;
  const { colour, limits, dim } = inkOf(look, box, b);
  const fill = dim ? mixed(look.theme.paper, colour, 0.25) : colour;
  const least = 1.5 / view.scale;
  const [wide, high] = [Math.max(w, least), Math.max(h, least)];
  pen.rect(box.x - wide / 2, box.y - high / 2, wide, high, 0, fill);
  if (limits && !dim) {
    pen.rect(box.x - wide / 2, box.y + high / 2 - high / 4, wide, high / 4, 0, look.theme.limit);
  }
  if (b === look.selected) {
    const stroke = { colour: look.theme.ink, width: 3 / view.scale };
    pen.frame(box.x - wide / 2, box.y - high / 2, wide, high, 0, stroke);
  }
}

function paintBox(pen: Pen, look: Look, box: Box, b: number): void {
  const { theme, scene } = look;
  const { w, h } = scene;
  const [x, y] = [box.x - w / 2, box.y - h / 2];
  const { device, colour, limits, dim } = inkOf(look, box, b);
  const faint = (full: string): string => (dim ? mixed(theme.paper, full, 0.3) : full);
  pen.rect(x, y, w, h, 5, faint(tint(colour, theme)));
  const strip = device === -1 ? 0 : STRIP;
  if (strip) {
    pen.rect(x, y, strip, h, 5, faint(colour));
    pen.rect(x + strip - 5, y, 5, h, 0, faint(colour));
    paintPattern(pen, device, x, y, h, faint(mixed(colour, ON_DEVICE, 0.35)));
    const label = device === -2 ? "…" : String(device + 1);
    const size = label.length > 2 ? 10 : 12;
    pen.text(x + strip / 2 - label.length * size * 0.29, y + h / 2, label, size, faint(ON_DEVICE), true);
  }
  const share = box.operators.reduce((sum, v) => sum + look.share(v), 0);
  const middle = y + h / 2 - (look.situation ? 2 : 0);
  const name = fitting(shown(box.name), w - strip - 14, 6.7);
  pen.text(x + strip + 7, middle, name, 12, faint(theme.ink));
  if (look.situation && device >= 0) {
    const wide = w - strip - 14;
    pen.rect(x + strip + 7, y + h - 6, wide, 2, 1, faint(mixed(theme.paper, theme.ink, 0.16)));
    const used = Math.min(1, share) * wide;
    if (used > 0.5) pen.rect(x + strip + 7, y + h - 6, used, 2, 1, faint(theme.ink));
  }
  if (limits) pen.frame(x, y, w, h, 5, { colour: faint(theme.limit), width: 2 });
  if (b === look.selected) {
    pen.frame(x - 3.5, y - 3.5, w + 7, h + 7, 8, { colour: theme.accent, width: 2.5 });
  }
}

/** Devices of one colour differ: the second has stripes, the third has dots. */
function paintPattern(pen: Pen, device: number, x: number, y: number, h: number, colour: string): void {
  const pattern = device < 0 ? 0 : patternOf(device);
  if (pattern === 1) {
    for (const shift of [3, STRIP - 5]) pen.line([x + shift, y + 3, x + shift, y + h - 3], { colour, width: 2 });
  } else if (pattern === 2) {
    for (const level of [4, h - 4]) pen.line([x + 3, y + level, x + STRIP - 3, y + level], { colour, width: 2 });
  }
}

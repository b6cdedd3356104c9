/** Boxes and lines to draw: the layout of Python, devices as lanes, or groups as boxes. */

import { type GroupsPart, type ProblemPart } from "./document";

export interface Box {
  readonly operators: readonly number[];
  readonly name: string;
  readonly layer: number;
  /** Centre. */
  x: number;
  y: number;
}

export interface Line {
  /** Boxes that it joins. */
  readonly from: number;
  readonly to: number;
  readonly streams: readonly number[];
  readonly bends: readonly number[];
}

export interface Lane {
  readonly device: number;
  readonly y: number;
  readonly height: number;
}

export interface Scene {
  readonly boxes: readonly Box[];
  readonly lines: readonly Line[];
  readonly lanes: readonly Lane[];
  readonly width: number;
  readonly height: number;
  /** Size of a box. */
  readonly w: number;
  readonly h: number;
  /** The box of every operator. */
  readonly boxOf: Int32Array;
  /** Whether layers run from top to bottom, not from left to right. */
  readonly down?: boolean;
}

const GAP = 14;
const LAYER_GAP = 56;
const DOWN_GAP = 34;
/** Least width of the label of a lane, and that of a letter of it. */
const LANE_LABEL = 104;
const LANE_LETTER = 7;
/** Pixels around a scene, most pixels per unit, and most that gaps grow by to fill a window. */
export const MARGIN = 18;
const MAX_SCALE = 1.7;
const MAX_SPREAD = 2.4;
/** How much larger a turned scene must be to be preferred. */
const WORTH_TURNING = 1.35;

/** The graph as Python laid it out. */
export function graphScene(problem: ProblemPart): Scene {
  const { layout, operators, streams } = problem;
  const boxes = operators.name.map((name, v) => ({
    operators: [v],
    name,
    layer: layout.layer[v],
    x: layout.x[v],
    y: layout.y[v],
  }));
  const lines = streams.source.map((u, e) => ({
    from: u,
    to: streams.target[e],
    streams: [e],
    bends: layout.bends?.[e] || [],
  }));
  const boxOf = Int32Array.from(boxes.keys());
  const [width, height] = layout.extent;
  return { boxes, lines, lanes: [], width, height, w: layout.width, h: layout.height, boxOf };
}

/** Pixels per unit at which a scene fits into a window. */
export function scaleFor({ width, height }: Scene, w: number, h: number): number {
  return Math.max(0.01, Math.min(MAX_SCALE, (w - 2 * MARGIN) / width, (h - 2 * MARGIN) / height));
}

/** A graph as it fills a window best: from left to right or from top to bottom, with wider gaps. */
export function arranged(scene: Scene, w: number, h: number): Scene {
  const down = turned(scene);
  const best = scaleFor(down, w, h) > WORTH_TURNING * scaleFor(scene, w, h) ? down : scene;
  return spread(best, w, h, scene.w / 2);
}

/** A scene with wider gaps to the right of a place, as far as there is room. */
function spread(scene: Scene, w: number, h: number, from: number): Scene {
  const gaps = scene.width - scene.w / 2 - from;
  const room = (w - 2 * MARGIN) / scaleFor(scene, w, h) - scene.width;
  if (gaps <= 0 || room <= 0) return scene;
  const more = Math.min(MAX_SPREAD, 1 + room / gaps);
  return placed(scene, scene.width + gaps * (more - 1), scene.height, (x, y) => [from + (x - from) * more, y]);
}

/** Layers from top to bottom. */
function turned(scene: Scene): Scene {
  const { w, h } = scene;
  const across = (w + GAP) / (h + GAP);
  const along = (h + DOWN_GAP) / (w + LAYER_GAP);
  const width = w + (scene.height - h) * across;
  const height = h + (scene.width - w) * along;
  const point = (x: number, y: number): [number, number] => [w / 2 + (y - h / 2) * across, h / 2 + (x - w / 2) * along];
  return { ...placed(scene, width, height, point), down: true };
}

/** A scene whose points are elsewhere. */
function placed(
  scene: Scene,
  width: number,
  height: number,
  point: (x: number, y: number) => [number, number],
): Scene {
  const boxes = scene.boxes.map((box) => {
    const [x, y] = point(box.x, box.y);
    return { ...box, x, y };
  });
  const lines = scene.lines.map((line) => ({
    ...line,
    bends: line.bends.flatMap((x, i) => (i % 2 === 0 ? point(x, line.bends[i + 1]) : [])),
  }));
  return { ...scene, boxes, lines, width, height };
}

/** Every group as one box, at the place of its operators; boxes of a layer are moved apart. */
export function groupScene(problem: ProblemPart, groups: GroupsPart): Scene {
  const { layout, streams } = problem;
  const members: number[][] = groups.name.map(() => []);
  groups.of.forEach((g, v) => members[g].push(v));
  const mean = (list: readonly number[], values: readonly number[]): number =>
    list.reduce((sum, v) => sum + values[v], 0) / Math.max(1, list.length);
  const boxes: Box[] = members.map((operators, g) => ({
    operators,
    name: groups.name[g],
    layer: Math.round(mean(operators, layout.layer)),
    x: 0,
    y: mean(operators, layout.y),
  }));
  const merged = new Map<string, { from: number; to: number; streams: number[] }>();
  streams.source.forEach((u, e) => {
    const [from, to] = [groups.of[u], groups.of[streams.target[e]]];
    if (from === to) return;
    const line = merged.get(`${from}/${to}`);
    if (line) line.streams.push(e);
    else merged.set(`${from}/${to}`, { from, to, streams: [e] });
  });
  const lines = [...merged.values()].map((line) => ({ ...line, bends: [] }));
  const { width: w, height: h } = layout;
  const layers = [...new Set(boxes.map((box) => box.layer))].sort((a, b) => a - b);
  let height = h;
  layers.forEach((layer, column) => {
    const row = boxes.filter((box) => box.layer === layer).sort((a, b) => a.y - b.y);
    let y = h / 2;
    for (const box of row) {
      box.x = w / 2 + column * (w + 64);
      box.y = y;
      y += h + GAP;
    }
    height = Math.max(height, y - GAP - h / 2);
  });
  for (const layer of layers) {
    const row = boxes.filter((box) => box.layer === layer);
    const shift = (height - (row.length * (h + GAP) - GAP)) / 2;
    for (const box of row) box.y += shift;
  }
  const width = layers.length * (w + 64) - 64;
  return { boxes, lines, lanes: [], width, height, w, h, boxOf: Int32Array.from(groups.of) };
}

/** The boxes of a scene on their devices, which are lanes from top to bottom of a window. */
export function laneScene(
  scene: Scene,
  place: ArrayLike<number>,
  devices: readonly string[],
  w: number,
  h: number,
): Scene {
  const n = devices.length;
  const longest = devices.reduce((most, name) => Math.max(most, Math.min(16, name.length)), 0);
  const label = Math.max(LANE_LABEL, 40 + LANE_LETTER * longest);
  const columns = new Map<number, number>();
  for (const x of [...new Set(scene.boxes.map((box) => Math.round(box.x)))].sort((a, b) => a - b)) {
    columns.set(x, columns.size);
  }
  const pitch = scene.h + 8;
  const stacks = new Map<string, number>();
  const deepest = new Int32Array(n).fill(1);
  const rows = scene.boxes.map((box) => {
    const device = place[box.operators[0]];
    const key = `${device}/${Math.round(box.x)}`;
    const row = stacks.get(key) ?? 0;
    stacks.set(key, row + 1);
    deepest[device] = Math.max(deepest[device], row + 1);
    return row;
  });
  const lanes: Lane[] = [];
  let y = 0;
  for (let device = 0; device < n; device++) {
    const height = deepest[device] * pitch + 12;
    lanes.push({ device, y, height });
    y += height + 6;
  }
  const boxes = scene.boxes.map((box, b) => ({
    ...box,
    x: label + (columns.get(Math.round(box.x)) ?? 0) * (scene.w + 36) + scene.w / 2 + 12,
    y: lanes[place[box.operators[0]]].y + 6 + (rows[b] + 0.5) * pitch,
  }));
  const lines = scene.lines.map((line) => ({ ...line, bends: [] }));
  const width = label + columns.size * (scene.w + 36);
  const whole = { ...scene, boxes, lines, lanes, width, height: Math.max(y - 6, scene.h) };
  return spread(whole, w, h, label + scene.w / 2 + 12);
}

/** Finds the box at a point without looking at all of them. */
export class Finder {
  private readonly cells = new Map<number, number[]>();

  constructor(private readonly scene: Scene) {
    scene.boxes.forEach((box, b) => {
      for (const key of this.keys(box.x, box.y)) {
        const cell = this.cells.get(key);
        if (cell) cell.push(b);
        else this.cells.set(key, [b]);
      }
    });
  }

  at(x: number, y: number): number {
    const { scene } = this;
    const cell = this.cells.get(key(Math.floor(x / scene.w), Math.floor(y / scene.h))) ?? [];
    for (let i = cell.length - 1; i >= 0; i--) {
      const box = scene.boxes[cell[i]];
      if (Math.abs(box.x - x) <= scene.w / 2 && Math.abs(box.y - y) <= scene.h / 2) return cell[i];
    }
    return -1;
  }

  private *keys(x: number, y: number): Iterable<number> {
    const { w, h } = this.scene;
    for (let i = Math.floor(x / w - 0.5); i <= Math.floor(x / w + 0.5); i++) {
      for (let j = Math.floor(y / h - 0.5); j <= Math.floor(y / h + 0.5); j++) yield key(i, j);
    }
  }
}

function key(i: number, j: number): number {
  return (i + 1e4) * 1e6 + (j + 1e4);
}

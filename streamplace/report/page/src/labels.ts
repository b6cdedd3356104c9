/** Places of labels beside points, such that they neither overlap nor leave the chart. */

/** Width of a letter, where nothing measures it, and height of a line, of the labels' font. */
const LETTER = 6.4;
const LINE = 13;
/** Most lines by which a label is moved away from its point. */
const MAX_LINES = 12;
const GAP = 8;

export interface Frame {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

type Spot = readonly [x: number, y: number];

/** Left end of the baseline of each label, in the order of the points; none where there is no room. */
export function spots(
  points: readonly Spot[],
  texts: readonly string[],
  frame: Frame,
  widthOf: (text: string) => number = (text) => LETTER * [...text].length,
): (Spot | undefined)[] {
  const taken: { x: number; y: number; width: number }[] = points.map(([x, y]) => ({ x: x - 5, y: y + 5, width: 10 }));
  return points.map(([x, y], k) => {
    const width = widthOf(texts[k]);
    const free = ([a, b]: Spot): boolean =>
      a >= frame.left && a + width <= frame.right && b - LINE >= frame.top && b <= frame.bottom &&
      taken.every((box, i) => i === k || b - LINE >= box.y || box.y - LINE >= b || a >= box.x + box.width || box.x >= a + width);
    const tried = Array.from({ length: MAX_LINES }, (_, i) => i * LINE).flatMap((far): Spot[] => [
      [x + GAP, y - 7 - far],
      [x - GAP - width, y - 7 - far],
      [x + GAP, y + 15 + far],
      [x - GAP - width, y + 15 + far],
    ]);
    const spot = tried.find(free);
    if (spot) taken.push({ x: spot[0], y: spot[1], width });
    return spot;
  });
}

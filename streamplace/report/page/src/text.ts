/** Names and numbers as texts. */

/** Characters that steer a terminal or the direction of a text, and halves of pairs. */
const UNSAFE =
  /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb]/gu;
const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\u{1f300}-\u{1faff}]/u;

/** A name that can be shown: at most so many characters, none of which changes the text around. */
export function shown(name: string, most = 60): string {
  const safe = name.slice(0, 2 * most + 2).replace(UNSAFE, "\ufffd");
  const letters = Array.from(safe);
  if (letters.length > most || name.length > safe.length) {
    return letters.slice(0, most - 1).join("") + "…";
  }
  return safe.trim() === "" ? `“${safe}”` : safe;
}

/** As much of a name as fits into a width, in which a letter takes `letter`. */
export function fitting(name: string, width: number, letter: number): string {
  const letters = Array.from(shown(name, 80));
  let room = width / letter;
  for (let i = 0; i < letters.length; i++) {
    room -= WIDE.test(letters[i]) ? 1.9 : 1;
    if (room < 0) return i < 2 ? "" : letters.slice(0, i - 1).join("") + "…";
  }
  return letters.join("");
}

export function percent(share: number): string {
  if (!Number.isFinite(share)) return "∞";
  const value = 100 * share;
  if (value === 0) return "0 %";
  if (value < 0.1) return "< 0.1 %";
  return `${value >= 1000 ? grouped(Math.round(value)) : value.toFixed(1)} %`;
}

/** A number with three or four digits and commas between thousands. */
export function number(value: number, digits = 4): string {
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e15 || size < 1e-4) return value.toExponential(2);
  if (size >= 1000) return grouped(Math.round(value));
  return String(Number(value.toPrecision(digits)));
}

function grouped(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

const TIMES: readonly (readonly [number, string])[] = [
  [3600, "h"],
  [60, "min"],
  [1, "s"],
  [1e-3, "ms"],
  [1e-6, "µs"],
  [1e-9, "ns"],
];

export function seconds(value: number): string {
  if (value === 0) return "0 s";
  if (!Number.isFinite(value)) return "for ever";
  for (const [size, unit] of TIMES) {
    if (value >= (size >= 60 ? 2 * size : size)) return `${number(value / size)} ${unit}`;
  }
  return `${number(value / 1e-9)} ns`;
}

const SIZES = ["B", "kB", "MB", "GB", "TB", "PB"];

export function bytes(value: number): string {
  let i = 0;
  for (; value >= 1000 && i < SIZES.length - 1; i++) value /= 1000;
  return `${number(value, 3)} ${SIZES[i]}`;
}

export function counted(count: number, noun: string): string {
  return `${number(count)} ${noun}${count === 1 ? "" : "s"}`;
}

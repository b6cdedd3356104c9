/** Colours: those of the page, and one for every device, beside which its number always stands. */

/** Paul Tol's light scheme: colour-blind people tell them apart, and dark text is read on all. */
const DEVICES = [
  "#77aadd",
  "#ee8866",
  "#eedd88",
  "#44bb99",
  "#ffaabb",
  "#bbcc33",
  "#99ddff",
  "#aaaa00",
  "#dddddd",
];
export const ON_DEVICE = "#1b1f24";

export interface Theme {
  readonly dark: boolean;
  readonly ink: string;
  readonly soft: string;
  readonly line: string;
  readonly paper: string;
  readonly ground: string;
  readonly accent: string;
  readonly limit: string;
}

let current: Theme | undefined;

/** The colours of now; read anew after the page has changed between light and dark. */
export function theme(): Theme {
  current ??= readTheme();
  return current;
}

export function forgetTheme(): void {
  current = undefined;
}

function readTheme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  return {
    dark: matchMedia("(prefers-color-scheme: dark)").matches,
    ink: of("ink"),
    soft: of("soft"),
    line: of("line"),
    paper: of("paper"),
    ground: of("ground"),
    accent: of("accent"),
    limit: of("limit"),
  };
}

export function deviceColour(device: number): string {
  return DEVICES[device % DEVICES.length];
}

/** How often the colours have been used before: devices of one colour differ in their pattern. */
export function patternOf(device: number): number {
  return Math.floor(device / DEVICES.length) % 3;
}

/** A colour between two others, given as #rrggbb. */
export function mixed(a: string, b: string, share: number): string {
  const at = (text: string, i: number): number => parseInt(text.slice(i, i + 2), 16);
  const part = (i: number): string =>
    Math.round(at(a, i) * (1 - share) + at(b, i) * share)
      .toString(16)
      .padStart(2, "0");
  return `#${part(1)}${part(3)}${part(5)}`;
}

/** Light colour for the body of what belongs to a device. */
export function tint(colour: string, look: Theme): string {
  return mixed(look.paper, colour, look.dark ? 0.3 : 0.38);
}

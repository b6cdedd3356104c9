/** Elements without markup: every text becomes a text node. */

type Child = Node | string | null | undefined | false;
type Attributes = Record<string, string | number | boolean | null | undefined>;

const SVG = "http://www.w3.org/2000/svg";

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  return fill(document.createElement(tag), attributes, children);
}

export function s<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill<E extends Element>(element: E, attributes: Attributes, children: Child[]): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    element.setAttribute(name, value === true ? "" : String(value));
  }
  put(element, ...children);
  return element;
}

export function put(element: Element, ...children: Child[]): void {
  element.append(...children.filter((child): child is Node | string => Boolean(child)));
}

export function replace(element: Element, ...children: Child[]): void {
  element.replaceChildren();
  put(element, ...children);
}

/** A name, isolated from the direction of the text around it. */
export function named(text: string): HTMLElement {
  return h("bdi", {}, text);
}

export function button(
  label: string,
  act: () => void,
  attributes: Attributes = {},
): HTMLButtonElement {
  const element = h("button", { type: "button", ...attributes }, label);
  element.addEventListener("click", act);
  return element;
}

export function choice(
  label: string,
  options: readonly (readonly [string, string])[],
  act: (value: string) => void,
): HTMLSelectElement {
  const element = h("select", { "aria-label": label });
  for (const [value, text] of options) put(element, h("option", { value }, text));
  element.addEventListener("change", () => act(element.value));
  return element;
}

/** Let the reader have a text: on the clipboard, or where that is missing, in a field to copy. */
export async function copy(text: string, about: HTMLElement): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    replace(about, "Copied.");
  } catch {
    const field = h("textarea", { readonly: true, rows: 5, "aria-label": "Text to copy" });
    field.value = text;
    replace(about, "Copy this text:", field);
    field.select();
  }
}

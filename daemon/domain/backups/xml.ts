/** Finds a few named elements in responses of an object store: flat lists without attributes. Not an XML parser; the input is untrusted. */

/** Content of each element of this name, which contains no element of its own name. */
export function elementsIn(text: string, name: string): string[] {
  return text
    .split(`<${name}>`)
    .slice(1)
    .map((rest) => rest.split(`</${name}>`, 1)[0] ?? "");
}

/** Content of the first element of this name; empty if absent. */
export function textIn(text: string, name: string): string {
  return decodeEntities(elementsIn(text, name)[0] ?? "");
}

const ENTITIES: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", "#34": '"', "#39": "'" };

export const decodeEntities = (text: string): string =>
  text.replace(/&([#\w]{2,5});/g, (whole, name: string) => ENTITIES[name.toLowerCase()] ?? whole);

/** Owns finding a few named elements in what an object store answers: flat lists without attributes. It is no parser of XML, and trusts none. */

/** What stands within each element of this name, which holds none of its own name. */
export function elementsIn(text: string, name: string): string[] {
  return text
    .split(`<${name}>`)
    .slice(1)
    .map((rest) => rest.split(`</${name}>`, 1)[0] ?? "");
}

/** What stands within the first one; empty where there is none. */
export function textIn(text: string, name: string): string {
  return decodeEntities(elementsIn(text, name)[0] ?? "");
}

const ENTITIES: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", "#34": '"', "#39": "'" };

export const decodeEntities = (text: string): string =>
  text.replace(/&([#\w]{2,5});/g, (whole, name: string) => ENTITIES[name.toLowerCase()] ?? whole);

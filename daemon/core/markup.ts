/** Builds HTML from text: inserted values are escaped, unless they are Markup. */

export class Markup {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type MarkupPart = Markup | string | number | readonly MarkupPart[];

export function html(strings: TemplateStringsArray, ...parts: MarkupPart[]): Markup {
  return new Markup(strings.map((text, index) => text + shown(parts[index] ?? "")).join(""));
}

function shown(part: MarkupPart): string {
  if (part instanceof Markup) return part.text;
  if (Array.isArray(part)) return part.map(shown).join("");
  return String(part).replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** A whole HTML document as text: every page that the daemon renders is one of these. */
import type { ComponentChildren } from "preact";
import { renderToString } from "preact-render-to-string";

interface Document {
  title: string;
  head: ComponentChildren;
  /** The element `body`. */
  body: ComponentChildren;
  /** Light or dark; null: as the system. */
  colours?: string | null;
}

export const documentText = ({ title, head, body, colours = null }: Document): string =>
  `<!doctype html>\n${renderToString(
    <html lang="en" data-colours={colours ?? undefined}>
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>{title}</title>
        {head}
      </head>
      {body}
    </html>,
  )}`;

/** The content of an element that is not escaped: a style sheet, a script, HTML from another renderer. Never text of a person that is not escaped. */
export const raw = (text: string) => ({ dangerouslySetInnerHTML: { __html: text } });

/** A page of docs/ as HTML, for browsers: its Markdown as Bun renders it, next to the list of all pages. It has no script. */
import { createHash } from "node:crypto";
import { VERSION } from "../../../../shared/version.ts";
import { html, Markup } from "../../../core/markup.ts";
import type { DocsPage } from "./page.ts";
import { listedPages } from "./pages.ts";
import { STYLE } from "./style.ts";

const POLICY = [
  "default-src 'none'",
  `style-src 'sha256-${createHash("sha256").update(STYLE).digest("base64")}'`,
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

export function textPage(name: string, markdown: string): DocsPage {
  const title = /^# (.+)$/m.exec(markdown)?.[1] ?? name;
  // Words in angle brackets are placeholders, never HTML.
  const rendered = Bun.markdown
    .html(markdown, { headings: { ids: true }, noHtmlBlocks: true, noHtmlSpans: true })
    // Rendered ids of headings lack the underscores that links to them have.
    .replaceAll(/(?<= href="[\w.-]*#)[\w-]+(?=")/g, (id) => id.replaceAll("_", ""));
  const groups = [...Map.groupBy(listedPages(), ({ group }) => group)];
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title.replaceAll("`", "")} · roomd ${VERSION}</title>
<style>${new Markup(STYLE)}</style>
</head>
<body>
<nav aria-label="Pages">
<div class="top"><a class="brand" href="README.md">roomd</a></div>
<details><summary>All pages</summary>
${groups.map(
  ([group, pages]) =>
    html`<div class="group"><h2>${group}</h2><ul>${pages.map((each) => html`<li><a href="${each.name}"${each.name === name ? html` aria-current="page"` : ""}>${each.title}</a></li>`)}</ul></div>
`,
)}
<div class="group"><h2>API</h2><ul><li><a href="/docs">Every call</a></li></ul></div>
</details>
</nav>
<main id="top">
${new Markup(rendered)}
</main>
</body>
</html>
`;
  return { html: page.text, policy: POLICY };
}

/** A page of docs/ as HTML, for browsers: its Markdown as Bun renders it, next to the list of all pages. It has no script. */
import { VERSION } from "../../../../shared/version.ts";
import { hashSource } from "../../../core/hash-source.ts";
import { documentText, raw } from "../../../web/document.tsx";
import type { DocsPage } from "./page.tsx";
import { listedPages } from "./pages.ts";
import { STYLE } from "./style.ts";

const POLICY = [
  "default-src 'none'",
  `style-src ${hashSource(STYLE)}`,
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
  const html = documentText({
    title: `${title.replaceAll("`", "")} · roomd ${VERSION}`,
    head: <style {...raw(STYLE)} />,
    body: (
      <body>
        <nav aria-label="Pages">
          <div class="top">
            <a class="brand" href="README.md">
              roomd
            </a>
          </div>
          <details>
            <summary>All pages</summary>
            {groups.map(([group, pages]) => (
              <div key={group} class="group">
                <h2>{group}</h2>
                <ul>
                  {pages.map((each) => (
                    <li key={each.name}>
                      <a href={each.name} aria-current={each.name === name ? "page" : undefined}>
                        {each.title}
                      </a>
                    </li>
                  ))}
                </ul>
              </div>
            ))}
            <div class="group">
              <h2>API</h2>
              <ul>
                <li>
                  <a href="/docs">Every call</a>
                </li>
              </ul>
            </div>
          </details>
        </nav>
        <main id="top" {...raw(rendered)} />
      </body>
    ),
  });
  return { html, policy: POLICY };
}

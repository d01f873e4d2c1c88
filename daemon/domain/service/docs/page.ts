/**
 * The OpenAPI document as a page for people: first steps, each operation by its area, and at the end all headers and errors. Search,
 * copying and the choice between light and dark need its script; reading does not. It loads nothing from other origins, as its content
 * security policy declares.
 */
import { createHash } from "node:crypto";
import { clientWays } from "../../../../shared/prompts/clients.ts";
import { VERSION } from "../../../../shared/version.ts";
import { type Steps, wholly } from "../../../core/loop/index.ts";
import { html, Markup } from "../../../core/markup.ts";
import { inlineSteps } from "../openapi.ts";
import { errorsOf, headersOf } from "./catalogue.ts";
import {
  type DocumentedOperation,
  JSON_TYPE,
  type OpenapiDocument,
  type Placed,
  PROBLEM_TYPE,
  type Reference,
} from "./document.ts";
import { sectionOf } from "./operation.ts";
import SCRIPT from "./page.browser.js" with { type: "text" };
import { STYLE } from "./style.ts";

export interface DocsPage {
  html: string;
  /** Of the header Content-Security-Policy. */
  policy: string;
}

/** The page of this daemon; `url` is the service's public URL, without a trailing slash. */
export function* docsSteps(url: string): Steps<DocsPage> {
  const document = yield* inlineSteps(VERSION);
  return {
    html: yield* renderSteps(document as unknown as OpenapiDocument, url),
    policy: [
      "default-src 'none'",
      `style-src '${digestOf(STYLE)}'`,
      `script-src '${digestOf(SCRIPT)}'`,
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
      "require-trusted-types-for 'script'",
    ].join("; "),
  };
}

const digestOf = (text: string) => `sha256-${createHash("sha256").update(text).digest("base64")}`;

export const renderDocs = (document: OpenapiDocument, url: string): string => wholly(renderSteps(document, url));

/** An operation in each step. */
function* renderSteps({ info, paths, components }: OpenapiDocument, url: string): Steps<string> {
  const areas = new Map<string, Placed[]>();
  for (const [path, methods] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const area = operation.tags.at(-1) ?? "";
      areas.set(area, [...(areas.get(area) ?? []), placed(operation, method.toUpperCase(), path)]);
    }
  }
  const sections: Markup[] = [];
  for (const [area, list] of areas) {
    sections.push(html`<h2 id="area-${area}">${area}</h2>\n`);
    for (const operation of list) {
      sections.push(sectionOf(operation));
      yield;
    }
  }
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${info.title} ${info.version}: the API</title>
<style>${new Markup(STYLE)}</style>
<script>${new Markup(SCRIPT)}</script>
</head>
<body>
<nav aria-label="Operations">
<div class="top"><a class="brand" href="#top">${info.title} API</a><button type="button" class="theme" hidden>theme</button></div>
<label class="search" hidden><input type="search" placeholder="Search ( / )" aria-label="Search operations, headers and errors" autocomplete="off" spellcheck="false"></label>
<details><summary>All operations</summary>
<p class="none" role="status" hidden>Nothing matches.</p>
${[...areas].map(([area, list]) => groupOf(area, list.map(linkTo)))}
${groupOf(
  "Headers",
  Object.keys({ ...components.parameters, ...components.headers }).map((name) => foundAt(`header-${name}`, name)),
  "found",
)}
${groupOf(
  "Errors",
  Object.entries(components.examples).map(([code, { summary }]) => foundAt(`error-${code}`, code, summary)),
  "found",
)}
<div class="group"><h2>All</h2><ul><li data-search="all headers"><a href="#headers">All headers</a></li><li data-search="all error codes errors"><a href="#errors">All error codes</a></li></ul></div>
</details>
</nav>
<main id="top">
<h1>${info.title} API <small>${info.version}</small></h1>
<p>${info.description} This page is generated from <a href="/v1/openapi.json">the OpenAPI document</a>.</p>
<h2>Getting started</h2>
<p>A <em>room</em> holds one run. In it each <em>agent</em> can have a <em>sandbox</em>, a separate virtual machine. All of them share
the room's <em>drive</em>, which is <code>/mnt/drive</code> in each, and exchange <em>messages</em>.</p>
<ol>${FIRST_STEPS.map(([id, label]) => html`<li><a href="#${id}">${label}</a></li>`)}</ol>
<p>Every call not marked open needs the header <code>Authorization: Bearer key-…</code>. In the examples
<code>ROOMD_URL</code> is this service and <code>ROOMD_API_KEY</code> a key, which <code>roomd key create</code> on the host creates. Every
GET also works as HEAD. An <a href="#header-Idempotency-Key">Idempotency-Key</a> makes a POST safe to retry. Errors
are <code>${PROBLEM_TYPE}</code>; <a href="#errors">their codes</a> and <a href="#headers">all headers</a> are at the end. Ignore fields
of an answer that you do not know: fields may be added at any time.</p>
<h2>MCP clients</h2>
<p>Models use the same operations through MCP: Streamable HTTP at <code>/mcp</code>, with a sign-in in the browser or the same header; at
<code>/mcp/key</code> with the header alone; or <code>roomd mcp</code> on standard input and output.</p>
${clientWays(url).map(
  ({ client, signsIn, hasKey }) => html`<details><summary>${client}</summary>
<p>To sign in, into ${signsIn.into}:</p><pre>${signsIn.text}</pre><p>With a key, into ${hasKey.into}:</p><pre>${hasKey.text}</pre></details>
`,
)}
${sections}
${headersOf(components)}
${errorsOf(components.examples)}
</main>
</body>
</html>
`;
  return page.text;
}
/** First steps of a new user. */
const FIRST_STEPS: [operationId: string, what: string][] = [
  ["health", "See whether the service is ready."],
  ["room_create", "Create a room."],
  ["sandbox_create", "Create a sandbox in it, for an agent."],
  ["sandbox_exec", "Run a command in the sandbox."],
  ["fs_write", "Write to the drive, and read from it."],
  ["agent_send", "Send another agent a message."],
  ["room_destroy", "Destroy the room when the run is over."],
];

function placed({ parameters, ...operation }: DocumentedOperation, method: string, path: string): Placed {
  return {
    ...operation,
    method,
    path,
    parameters: parameters.filter((each) => "name" in each),
    headers: parameters.flatMap((each) => ("$ref" in each ? [nameIn(each)] : [])),
  };
}

const nameIn = ({ $ref }: Reference) => $ref.slice($ref.lastIndexOf("/") + 1);

/** A part of the list; parts of the kind `found` are shown during a search. */
function groupOf(title: string, items: readonly Markup[], kind = ""): Markup {
  return html`<div class="group ${kind}"><h2>${title}</h2><ul>${items}</ul></div>
`;
}

/** A line of the list, with its search words, which include the names of its fields. */
function linkTo({ operationId, summary, method, path, tags, parameters, requestBody }: Placed): Markup {
  const body = Object.keys(requestBody?.content[JSON_TYPE]?.schema.properties ?? {});
  const words = [operationId, summary, method, path, ...tags, ...parameters.map(({ name }) => name), ...body];
  return html`<li data-search="${words.join(" ").toLowerCase()}"><a href="#${operationId}">${summary}</a></li>`;
}

function foundAt(id: string, name: string, about = ""): Markup {
  return html`<li data-search="${`${name} ${about}`.toLowerCase()}"><a href="#${id}"><code>${name}</code></a></li>`;
}

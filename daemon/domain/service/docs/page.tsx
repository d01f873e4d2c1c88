/**
 * The OpenAPI document as a page for people: first steps, each operation by its area, and at the end all headers and errors. Search,
 * copying and the choice between light and dark need its script; reading does not. It loads nothing from other origins, as its content
 * security policy declares.
 */
import type { ComponentChildren } from "preact";
import { renderToString } from "preact-render-to-string";
import { clientWays } from "../../../../shared/prompts/clients.ts";
import { VERSION } from "../../../../shared/version.ts";
import { hashSource } from "../../../core/hash-source.ts";
import { type Steps, wholly } from "../../../core/loop/index.ts";
import { documentText, raw } from "../../../web/document.tsx";
import { inlineSteps } from "../openapi.ts";
import { Errors, Headers } from "./catalogue.tsx";
import {
  type DocumentedOperation,
  JSON_TYPE,
  type OpenapiDocument,
  type Placed,
  PROBLEM_TYPE,
  type Reference,
} from "./document.ts";
import { Operation } from "./operation.tsx";
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
      `style-src ${hashSource(STYLE)}`,
      `script-src ${hashSource(SCRIPT)}`,
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
      "require-trusted-types-for 'script'",
    ].join("; "),
  };
}

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
  const parts = [renderToString(<Introduction info={info} url={url} />)];
  for (const [area, list] of areas) {
    parts.push(renderToString(<h2 id={`area-${area}`}>{area}</h2>));
    for (const operation of list) {
      parts.push(renderToString(<Operation of={operation} />));
      yield;
    }
  }
  parts.push(renderToString(<Headers of={components} />));
  yield;
  parts.push(renderToString(<Errors of={components.examples} />));
  yield;
  return documentText({
    title: `${info.title} ${info.version}: the API`,
    head: (
      <>
        <style {...raw(STYLE)} />
        <script {...raw(SCRIPT)} />
      </>
    ),
    body: (
      <body>
        <Contents title={info.title} areas={areas} components={components} />
        <main id="top" {...raw(parts.join(""))} />
      </body>
    ),
  });
}

interface ContentsProps {
  title: string;
  areas: ReadonlyMap<string, readonly Placed[]>;
  components: OpenapiDocument["components"];
}

function Contents({ title, areas, components }: ContentsProps) {
  return (
    <nav aria-label="Operations">
      <div class="top">
        <a class="brand" href="#top">
          {title} API
        </a>
        <button type="button" class="theme" hidden>
          theme
        </button>
      </div>
      <label class="search" hidden>
        <input
          type="search"
          placeholder="Search ( / )"
          aria-label="Search operations, headers and errors"
          autocomplete="off"
          spellcheck={false}
        />
      </label>
      <details>
        <summary>All operations</summary>
        <p class="none" role="status" hidden>
          Nothing matches.
        </p>
        {[...areas].map(([area, list]) => (
          <Group key={area} title={area}>
            {list.map(linkTo)}
          </Group>
        ))}
        <Group title="Headers" isFound>
          {Object.keys({ ...components.parameters, ...components.headers }).map((name) =>
            foundAt(`header-${name}`, name),
          )}
        </Group>
        <Group title="Errors" isFound>
          {Object.entries(components.examples).map(([code, { summary }]) => foundAt(`error-${code}`, code, summary))}
        </Group>
        <Group title="All">
          <li data-search="all headers">
            <a href="#headers">All headers</a>
          </li>
          <li data-search="all error codes errors">
            <a href="#errors">All error codes</a>
          </li>
        </Group>
      </details>
    </nav>
  );
}

function Introduction({ info, url }: { info: OpenapiDocument["info"]; url: string }) {
  return (
    <>
      <h1>
        {info.title} API <small>{info.version}</small>
      </h1>
      <p>
        {info.description} This page is generated from <a href="/v1/openapi.json">the OpenAPI document</a>.
      </p>
      <h2>Getting started</h2>
      <p>
        A <em>room</em> holds one run. In it each <em>agent</em> can have a <em>sandbox</em>, a separate virtual
        machine. All of them share the room's <em>drive</em>, which is <code>/mnt/drive</code> in each, and exchange{" "}
        <em>messages</em>.
      </p>
      <ol>
        {FIRST_STEPS.map(([id, label]) => (
          <li key={id}>
            <a href={`#${id}`}>{label}</a>
          </li>
        ))}
      </ol>
      <p>
        Every call not marked open needs the header <code>Authorization: Bearer key-…</code>. In the examples{" "}
        <code>ROOMD_URL</code> is this service and <code>ROOMD_API_KEY</code> a key, which <code>roomd key create</code>{" "}
        on the host creates. Every GET also works as HEAD. An <a href="#header-Idempotency-Key">Idempotency-Key</a>{" "}
        makes a POST safe to retry. Errors are <code>{PROBLEM_TYPE}</code>; <a href="#errors">their codes</a> and{" "}
        <a href="#headers">all headers</a> are at the end. Ignore fields of an answer that you do not know: fields may
        be added at any time.
      </p>
      <h2>MCP clients</h2>
      <p>
        Models use the same operations through MCP: Streamable HTTP at <code>/mcp</code>, with a sign-in in the browser
        or the same header; at <code>/mcp/key</code> with the header alone; or <code>roomd mcp</code> on standard input
        and output.
      </p>
      {clientWays(url).map(({ client, signsIn, hasKey }) => (
        <details key={client}>
          <summary>{client}</summary>
          <p>To sign in, into {signsIn.into}:</p>
          <pre>{signsIn.text}</pre>
          <p>With a key, into {hasKey.into}:</p>
          <pre>{hasKey.text}</pre>
        </details>
      ))}
    </>
  );
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

/** A part of the list. `isFound`: it is shown during a search. */
function Group({ title, isFound, children }: { title: string; isFound?: boolean; children: ComponentChildren }) {
  return (
    <div class={isFound ? "group found" : "group"}>
      <h2>{title}</h2>
      <ul>{children}</ul>
    </div>
  );
}

/** A line of the list, with its search words, which include the names of its fields. */
function linkTo({ operationId, summary, method, path, tags, parameters, requestBody }: Placed) {
  const body = Object.keys(requestBody?.content[JSON_TYPE]?.schema.properties ?? {});
  const words = [operationId, summary, method, path, ...tags, ...parameters.map(({ name }) => name), ...body];
  return (
    <li key={operationId} data-search={words.join(" ").toLowerCase()}>
      <a href={`#${operationId}`}>{summary}</a>
    </li>
  );
}

function foundAt(id: string, name: string, about = "") {
  return (
    <li key={id} data-search={`${name} ${about}`.toLowerCase()}>
      <a href={`#${id}`}>
        <code>{name}</code>
      </a>
    </li>
  );
}

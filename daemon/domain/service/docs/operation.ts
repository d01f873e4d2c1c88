/** An operation on the page of /docs. */
import { quoted } from "../../../../shared/shell.ts";
import { html, type Markup } from "../../../core/markup.ts";
import {
  type DocumentedOperation,
  type DocumentedResponse,
  JSON_TYPE,
  type Placed,
  PROBLEM_TYPE,
  type Schema,
} from "./document.ts";
import { rowOf, rowsOf, tableOf } from "./fields.ts";

/** An operation: its description, fields and headers, a call with curl, its responses and its errors. */
export function sectionOf(operation: Placed): Markup {
  const { operationId, summary, description, method, path, requestBody } = operation;
  const body = requestBody?.content[JSON_TYPE];
  const fields = [
    ...operation.parameters.map(({ name, in: location, required, schema, description: about }) =>
      rowOf(name, location, required, { ...schema, ...(about ? { description: about } : {}) }),
    ),
    ...(body ? rowsOf(body.schema, "body") : []),
  ];
  const documented = new Map<string, string>();
  return html`<section id="${operationId}">
<h3><a href="#${operationId}">${summary}</a></h3>
<p class="call"><code><span class="method">${method}</span> ${path}</code> <span class="muted">${operationId}, ${accessOf(operation)}</span></p>
${description ? html`<p>${description}</p>` : ""}
${fields.length > 0 ? tableOf("Fields", ["Field", "In", "Type", "About"], fields) : ""}
<h4>Headers</h4>
<p class="names">${linksTo(operation.headers)}</p>
<h4>Example</h4>
${exampleOf(curlOf(operation))}
${Object.entries(operation.responses).map(([status, response]) => successOf(status, response, documented))}
<h4>Errors</h4>
<p class="names">${problemsOf(operation)}</p>
</section>
`;
}

function accessOf({ security, "x-scope": scope }: DocumentedOperation): string {
  if (security?.length === 0) return "open to all";
  if (scope === "operator") return "the operator's key";
  return scope === undefined ? "any key" : `scope ${scope}`;
}

/** A text to be copied. */
export function exampleOf(text: string): Markup {
  return html`<div class="example"><button type="button" class="copy" hidden>copy</button><pre>${text}</pre></div>`;
}

/** A call as a shell command. */
function curlOf({ method, path, parameters, security, requestBody }: Placed): string {
  const exampleFor = (name: string) => String(parameters.find((each) => each.name === name)?.example ?? name);
  const query = parameters
    .filter((each) => each.in === "query" && each.example !== undefined)
    .map(({ name }) => `${name}=${encodeURIComponent(exampleFor(name))}`);
  const place = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(exampleFor(name)));
  const body = requestBody?.content[JSON_TYPE]?.example;
  return [
    `curl ${method === "GET" ? "" : `-X ${method} `}"$ROOMD_URL${place}${query.length > 0 ? `?${query.join("&")}` : ""}"`,
    ...(security?.length === 0 ? [] : [`-H "Authorization: Bearer $ROOMD_API_KEY"`]),
    ...(body === undefined ? [] : ["-H 'Content-Type: application/json'", `-d ${quoted(JSON.stringify(body))}`]),
    ...(requestBody && !requestBody.content[JSON_TYPE] ? ["--data-binary @notes.txt"] : []),
  ].join(" \\\n  ");
}

/** `told` has the fields of earlier responses, with their status. */
function successOf(
  status: string,
  { description, headers, content = {} }: DocumentedResponse,
  documented: Map<string, string>,
): Markup {
  const codes = Object.keys(content[PROBLEM_TYPE]?.examples ?? {});
  const outcomes = description.split(", ").filter((each) => !codes.includes(each));
  if (outcomes.length === 0) return html``;
  const types = Object.keys(content).filter((type) => type !== PROBLEM_TYPE);
  const isJson = content[JSON_TYPE] !== undefined;
  const { schema, example } = content[JSON_TYPE] ?? content[types[0] ?? ""] ?? {};
  const shapes = shapesOf(schema ?? {});
  return html`<details><summary><code>${status}</code> ${outcomes.join(", ")}${types.length > 0 ? `: ${types.join(" or ")}` : ""}</summary>
<p class="names"><span class="muted">Headers:</span> ${linksTo(Object.keys(headers))}</p>
${!isJson && shapes.length > 0 ? html`<p>Each line, or the data of each event:</p>` : ""}
${example === undefined ? "" : exampleOf(typeof example === "string" ? example : JSON.stringify(example, null, isJson ? 2 : 0))}
${shapes.map((each) => fieldsOf(each, status, documented))}
</details>
`;
}

/** The variants of a stream's line, or the response itself. */
function shapesOf(schema: Schema): Schema[] {
  if (schema.anyOf) return schema.anyOf.flatMap(shapesOf);
  return schema.properties ? [schema] : [];
}

function fieldsOf(schema: Schema, status: string, documented: Map<string, string>): Markup {
  const text = JSON.stringify(schema);
  const before = documented.get(text);
  if (before !== undefined) return html`<p>Its fields are those of <code>${before}</code>.</p>`;
  documented.set(text, status);
  return tableOf("Fields of the answer", ["Field", "Type", "About"], rowsOf(schema, ""));
}

function linksTo(headers: readonly string[]): Markup[] {
  return headers.map((name) => html`<a href="#header-${name}"><code>${name}</code></a> `);
}

function problemsOf({ responses }: DocumentedOperation): Markup[] {
  return Object.entries(responses).flatMap(([status, { content }]) =>
    Object.keys(content?.[PROBLEM_TYPE]?.examples ?? {}).map(
      (code) => html`<a href="#error-${code}"><code>${status} ${code}</code></a> `,
    ),
  );
}

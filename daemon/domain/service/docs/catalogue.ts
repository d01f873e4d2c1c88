/** Parts common to all operations, at the end of the page of /docs: every header and every error code. */
import { html, type Markup } from "../../../core/markup.ts";
import type { OpenapiDocument } from "./document.ts";
import { tableOf, typeOf } from "./fields.ts";
import { exampleOf } from "./operation.ts";

/** One name may have two headers: one of requests, and one of responses. */
export function headersOf({ parameters, headers }: OpenapiDocument["components"]): Markup {
  const names = [...new Set([...Object.keys(parameters), ...Object.keys(headers)])].sort();
  const rowsFor = (name: string) =>
    [
      ["request", parameters[name]],
      ["answer", headers[name]],
    ] as const;
  const rows = names.flatMap((name) =>
    rowsFor(name)
      .filter(([, header]) => header !== undefined)
      .map(([location, header], index) => {
        const { description = "", schema = {}, example } = header ?? {};
        const id = index === 0 ? html` id="header-${name}"` : "";
        return html`<tr${id}><td><code>${name}</code></td><td>${location}</td><td>${typeOf(schema)}</td><td>${description} For example <code>${String(example)}</code></td></tr>
`;
      }),
  );
  return html`<section id="headers">${tableOf("All headers", ["Header", "In", "Type", "About"], rows)}</section>`;
}

/** One row per code, in order of status. */
export function errorsOf(problems: OpenapiDocument["components"]["examples"]): Markup {
  const rows = Object.entries(problems)
    .sort(([, one], [, other]) => one.value.status - other.value.status)
    .map(
      ([code, { summary, value }]) =>
        html`<tr id="error-${code}"><td><code>${code}</code></td><td>${value.status}</td><td>${value.retryable ? "yes" : "no"}</td><td>${summary}.${value.hint ? ` ${value.hint}` : ""}<details><summary>Example</summary>${exampleOf(JSON.stringify(value, null, 2))}</details></td></tr>
`,
    );
  return html`<section id="errors">${tableOf("All error codes", ["Code", "Status", "Try again", "About"], rows)}</section>`;
}

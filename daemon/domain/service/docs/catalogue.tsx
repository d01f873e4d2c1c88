/** Parts common to all operations, at the end of the page of /docs: every header and every error code. */
import type { OpenapiDocument } from "./document.ts";
import { FieldTable, typeOf } from "./fields.tsx";
import { Example } from "./operation.tsx";

/** One name may have two headers: one of requests, and one of responses. */
export function Headers({ of: { parameters, headers } }: { of: OpenapiDocument["components"] }) {
  const names = [...new Set([...Object.keys(parameters), ...Object.keys(headers)])].sort();
  const rowsFor = (name: string) =>
    [
      ["request", parameters[name]],
      ["answer", headers[name]],
    ] as const;
  return (
    <section id="headers">
      <FieldTable title="All headers" heads={["Header", "In", "Type", "About"]}>
        {names.flatMap((name) =>
          rowsFor(name)
            .filter(([, header]) => header !== undefined)
            .map(([location, header], n) => {
              const { description = "", schema = {}, example } = header ?? {};
              return (
                <tr key={`${name} ${location}`} id={n === 0 ? `header-${name}` : undefined}>
                  <td>
                    <code>{name}</code>
                  </td>
                  <td>{location}</td>
                  <td>{typeOf(schema)}</td>
                  <td>
                    {description} For example <code>{String(example)}</code>
                  </td>
                </tr>
              );
            }),
        )}
      </FieldTable>
    </section>
  );
}

/** One row per code, in order of status. */
export function Errors({ of }: { of: OpenapiDocument["components"]["examples"] }) {
  const sorted = Object.entries(of).sort(([, one], [, other]) => one.value.status - other.value.status);
  return (
    <section id="errors">
      <FieldTable title="All error codes" heads={["Code", "Status", "Try again", "About"]}>
        {sorted.map(([code, { summary, value }]) => (
          <tr key={code} id={`error-${code}`}>
            <td>
              <code>{code}</code>
            </td>
            <td>{value.status}</td>
            <td>{value.retryable ? "yes" : "no"}</td>
            <td>
              {summary}.{value.hint ? ` ${value.hint}` : ""}
              <details>
                <summary>Example</summary>
                <Example>{JSON.stringify(value, null, 2)}</Example>
              </details>
            </td>
          </tr>
        ))}
      </FieldTable>
    </section>
  );
}

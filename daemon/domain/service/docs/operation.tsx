/** An operation on the page of /docs. */
import { Fragment } from "preact";
import { quoted } from "../../../../shared/shell.ts";
import {
  type DocumentedOperation,
  type DocumentedResponse,
  JSON_TYPE,
  type Placed,
  PROBLEM_TYPE,
  type Schema,
} from "./document.ts";
import { FieldRow, FieldTable, rowsOf } from "./fields.tsx";

/** An operation: its description, fields and headers, a call with curl, its responses and its errors. */
export function Operation({ of }: { of: Placed }) {
  const { operationId, summary, description, method, path, requestBody, parameters, headers, responses } = of;
  const body = requestBody?.content[JSON_TYPE];
  const fields = [
    ...parameters.map(({ name, in: location, required, schema, description: about }) => (
      <FieldRow
        key={name}
        name={name}
        location={location}
        isRequired={required}
        schema={{ ...schema, ...(about ? { description: about } : {}) }}
      />
    )),
    ...(body ? rowsOf(body.schema, "body") : []),
  ];
  const documented = new Map<string, string>();
  return (
    <section id={operationId}>
      <h3>
        <a href={`#${operationId}`}>{summary}</a>
      </h3>
      <p class="call">
        <code>
          <span class="method">{method}</span> {path}
        </code>{" "}
        <span class="muted">
          {operationId}, {accessOf(of)}
        </span>
      </p>
      {description ? <p>{description}</p> : null}
      {fields.length > 0 ? (
        <FieldTable title="Fields" heads={["Field", "In", "Type", "About"]}>
          {fields}
        </FieldTable>
      ) : null}
      <h4>Headers</h4>
      <p class="names">
        <HeaderLinks to={headers} />
      </p>
      <h4>Example</h4>
      <Example>{curlOf(of)}</Example>
      {Object.entries(responses).map(([status, response]) => (
        <Success key={status} status={status} response={response} documented={documented} />
      ))}
      <h4>Errors</h4>
      <p class="names">{problemsOf(of)}</p>
    </section>
  );
}

function accessOf({ security, "x-scope": scope }: DocumentedOperation): string {
  if (security?.length === 0) return "open to all";
  if (scope === "operator") return "the operator's key";
  return scope === undefined ? "any key" : `scope ${scope}`;
}

/** A text to be copied. */
export function Example({ children }: { children: string }) {
  return (
    <div class="example">
      <button type="button" class="copy" hidden>
        copy
      </button>
      <pre>{children}</pre>
    </div>
  );
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

interface SuccessProps {
  status: string;
  response: DocumentedResponse;
  /** The status of earlier responses, by their fields. */
  documented: Map<string, string>;
}

function Success({ status, response: { description, headers, content = {} }, documented }: SuccessProps) {
  const codes = Object.keys(content[PROBLEM_TYPE]?.examples ?? {});
  const outcomes = description.split(", ").filter((each) => !codes.includes(each));
  if (outcomes.length === 0) return null;
  const types = Object.keys(content).filter((type) => type !== PROBLEM_TYPE);
  const isJson = content[JSON_TYPE] !== undefined;
  const { schema, example } = content[JSON_TYPE] ?? content[types[0] ?? ""] ?? {};
  const shapes = shapesOf(schema ?? {});
  return (
    <details>
      <summary>
        <code>{status}</code> {outcomes.join(", ")}
        {types.length > 0 ? `: ${types.join(" or ")}` : ""}
      </summary>
      <p class="names">
        <span class="muted">Headers:</span> <HeaderLinks to={Object.keys(headers)} />
      </p>
      {!isJson && shapes.length > 0 ? <p>Each line, or the data of each event:</p> : null}
      {example === undefined ? null : (
        <Example>{typeof example === "string" ? example : JSON.stringify(example, null, isJson ? 2 : 0)}</Example>
      )}
      {shapes.map((each) => fieldsOf(each, status, documented))}
    </details>
  );
}

/** The variants of a stream's line, or the response itself. */
function shapesOf(schema: Schema): Schema[] {
  if (schema.anyOf) return schema.anyOf.flatMap(shapesOf);
  return schema.properties ? [schema] : [];
}

function fieldsOf(schema: Schema, status: string, documented: Map<string, string>) {
  const text = JSON.stringify(schema);
  const before = documented.get(text);
  if (before !== undefined) {
    return (
      <p key={text}>
        Its fields are those of <code>{before}</code>.
      </p>
    );
  }
  documented.set(text, status);
  return (
    <FieldTable key={text} title="Fields of the answer" heads={["Field", "Type", "About"]}>
      {rowsOf(schema, "")}
    </FieldTable>
  );
}

/** Links with a space after each, at which their line may break. */
function linksTo(targets: readonly (readonly [id: string, text: string])[]) {
  return targets.map(([id, text]) => (
    <Fragment key={id}>
      <a href={`#${id}`}>
        <code>{text}</code>
      </a>{" "}
    </Fragment>
  ));
}

function HeaderLinks({ to }: { to: readonly string[] }) {
  return linksTo(to.map((name) => [`header-${name}`, name]));
}

function problemsOf({ responses }: DocumentedOperation) {
  const codes = Object.entries(responses).flatMap(([status, { content }]) =>
    Object.keys(content?.[PROBLEM_TYPE]?.examples ?? {}).map((code) => [`error-${code}`, `${status} ${code}`] as const),
  );
  return linksTo(codes);
}

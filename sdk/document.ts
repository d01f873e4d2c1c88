/**
 * Owns how the SDKs' generators read the OpenAPI document: every shape by its name, and every operation with what it takes, where, and what
 * it answers.
 */
import { openapiDocument } from "../daemon/domain/service/openapi.ts";

export type Schema = Record<string, unknown>;
type Content = Record<string, { schema: Schema }>;

interface Parameter {
  name: string;
  in: "path" | "query";
  required: boolean;
  description?: string;
  schema: Schema;
}

interface Described {
  operationId: string;
  summary: string;
  parameters: (Parameter | { $ref: string })[];
  requestBody?: { content: Content };
  responses: Record<string, { content?: Content; $ref?: string }>;
}

interface Document {
  paths: Record<string, Record<string, Described>>;
  components: { schemas: Record<string, Schema>; responses: Record<string, { content?: Content }> };
}

/** How an answer comes; a stream has an event on each line. */
export type AnswerKind = "json" | "events" | "bytes" | "text" | "socket";

export interface Operation {
  id: string;
  /** Of its shapes: `${name}Input`, and `${name}Answer` where the answer has a shape. */
  name: string;
  summary: string;
  row: OperationRow;
  hasAnswer: boolean;
}

/** Where an operation takes what. */
interface OperationRow {
  method: string;
  path: string;
  query?: string[];
  body?: "json" | "bytes";
  answer: AnswerKind;
}

const JSON_TYPE = "application/json";
const LINES_TYPE = "application/x-ndjson";

/** All shapes, those of inputs and answers among them, and all operations. */
export function readDocument(): { schemas: Record<string, Schema>; operations: Operation[] } {
  const { paths, components } = openapiDocument("generated") as unknown as Document;
  const schemas = { ...components.schemas };
  const operations: Operation[] = [];
  for (const [path, methods] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const { operationId: id, summary } = operation;
      const name = pascal(id);
      schemas[`${name}Input`] = inputOf(operation);
      const { kind, schema } = answerOf(operation, components);
      if (schema !== null) schemas[`${name}Answer`] = schema;
      operations.push({
        id,
        name,
        summary,
        row: rowOf(method, path, operation, kind),
        hasAnswer: schema !== null,
      });
    }
  }
  return { schemas, operations };
}

function rowOf(method: string, path: string, { parameters, requestBody }: Described, answer: AnswerKind): OperationRow {
  const query = parameters.flatMap((each) => ("name" in each && each.in === "query" ? [each.name] : []));
  const body = requestBody && (requestBody.content[JSON_TYPE] ? "json" : "bytes");
  return {
    method: method.toUpperCase(),
    path,
    ...(query.length > 0 ? { query } : {}),
    ...(body ? { body } : {}),
    answer,
  };
}

function inputOf({ parameters, requestBody }: Described): Schema {
  const own = parameters.filter((each): each is Parameter => "name" in each);
  const fields = {
    type: "object",
    required: own.filter(({ required }) => required).map(({ name }) => name),
    properties: Object.fromEntries(
      own.map(({ name, description, schema }) => [name, { ...schema, ...(description ? { description } : {}) }]),
    ),
    additionalProperties: false,
  };
  const body = requestBody?.content[JSON_TYPE]?.schema;
  if (!body?.$ref) return fields;
  return own.length === 0 ? body : { allOf: [body, fields] };
}

/** Of several media types the one that the SDKs ask for. */
function answerOf(
  { responses }: Described,
  components: Document["components"],
): { kind: AnswerKind; schema: Schema | null } {
  const [status, success] = Object.entries(responses).find(([code]) => Number(code) < 300) ?? ["", {}];
  const { content = {} } = success.$ref ? (components.responses[success.$ref.split("/").at(-1) ?? ""] ?? {}) : success;
  if (status === "101") return { kind: "socket", schema: null };
  const json = content[JSON_TYPE]?.schema;
  if (json) return { kind: "json", schema: json };
  const line = content[LINES_TYPE]?.schema;
  if (line) return { kind: "events", schema: line };
  return { kind: content["text/plain"] ? "text" : "bytes", schema: null };
}

export function pascal(name: string): string {
  return name
    .split("_")
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join("");
}

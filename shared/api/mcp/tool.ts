/**
 * Type of an MCP tool: an operation for a model, with the operation's parameters, query and body in one arguments object; and the schemas
 * for clients.
 */
import { type TObject, type TProperties, type TSchema, Type } from "@sinclair/typebox";
import { fields, type Operation, plain } from "../contract.ts";

/** Assumptions that a client may make about a call in advance. */
export interface ToolHints {
  readOnlyHint: boolean;
  destructiveHint: boolean;
  idempotentHint: boolean;
  openWorldHint: boolean;
}

export interface Tool {
  name: string;
  title: string;
  /** The operation behind the call; a tool that can be resumed uses others as well. */
  operation: Operation;
  description: string;
  input: TObject;
  /** Arguments that are accepted but not listed. */
  hidden?: readonly string[];
  /** Schema of `result` when the call succeeded. */
  result: TSchema;
  hints: ToolHints;
}

interface ToolDraft {
  operation: Operation;
  /** The operation's own if absent. */
  name?: string;
  title: string;
  /** For a model without any knowledge of the product: its purpose and its preconditions. */
  about: string;
  /** The call to make after it. */
  next: string;
  example: Record<string, unknown>;
  /** Arguments of the operation that the tool lacks. */
  without?: readonly string[];
  /** Arguments that are accepted but not listed. */
  hidden?: readonly string[];
  /** Arguments that the operation lacks, or has in another form. */
  also?: Record<string, TSchema>;
  result?: TSchema;
  hints: ToolHints;
}

const LOOKS: ToolHints = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false };
const ADDS: ToolHints = { readOnlyHint: false, destructiveHint: false, idempotentHint: false, openWorldHint: false };
const REPEATS: ToolHints = { ...ADDS, idempotentHint: true };
const REMOVES: ToolHints = { ...REPEATS, destructiveHint: true };
export const HINTS = { LOOKS, ADDS, REPEATS, REMOVES };

const idempotencyKey = Type.Optional(
  Type.String({
    pattern: "^[\\x21-\\x7e]{1,255}$",
    description:
      "A name for this call. If the answer was lost, call again with the same name: you get the same answer and nothing is done twice.",
  }),
);

export function tool({ operation, about, next, example, without = [], also = {}, ...draft }: ToolDraft): Tool {
  const kept = Object.entries<TSchema>(argumentsOf(operation)).filter(([name]) => !without.includes(name));
  return {
    name: operation.name,
    result: operation.output,
    ...draft,
    operation,
    description: `${about}\nNext: ${next}\nExample: ${JSON.stringify(example)}`,
    input: fields({
      ...Object.fromEntries(kept),
      ...also,
      ...(operation.method === "POST" ? { idempotency_key: idempotencyKey } : {}),
    }),
  };
}

/** All arguments of an operation, from parameters, query and body. */
export function argumentsOf({ params, query, body }: Operation): TProperties {
  const inBody = body === null || body === "bytes" ? {} : body.properties;
  return { ...params.properties, ...query.properties, ...inBody };
}

/** An object with any fields, stated explicitly, since some clients reject an empty schema. */
const anything = Type.Object({}, { additionalProperties: true });

/** The call that continues an unfinished one. */
export const nextCall = fields({ tool: Type.String(), arguments: anything });

/** An output that may include the call to continue with. */
export function continued(output: TObject) {
  return fields({ ...output.properties, next: Type.Optional(nextCall) });
}

/** Whether an argument is accepted but not listed: `_json` variants for clients without objects, and arguments of no use to a model. */
const isHidden = (name: string) => name.endsWith("_json") || ["idempotency_key", "guest_cid"].includes(name);

/** The input schema in a list of tools. It permits other names, since hidden arguments and synonyms are accepted too. */
export function listedInput({ input, hidden = [] }: Pick<Tool, "input" | "hidden">): Record<string, unknown> {
  const shown = Object.entries(input.properties).filter(([name]) => !isHidden(name) && !hidden.includes(name));
  const properties = Object.fromEntries(shown.map(([name, schema]) => [name, shortened(schema)]));
  const required = (input.required ?? []).filter((name) => name in properties);
  return { type: "object", properties, ...(required.length > 0 ? { required } : {}) };
}

/** The listed argument names. */
export const argumentNames = (tool: Pick<Tool, "input" | "hidden">): string[] =>
  Object.keys(listedInput(tool).properties as object);

const MAX_WORDS = 12;
const RULES = [
  "pattern",
  "examples",
  "maxLength",
  "minLength",
  "maxItems",
  "minItems",
  "uniqueItems",
  "contentEncoding",
];

/** Removes rules that a refusal names anyway, and long lists of words. */
function shortened(schema: object): unknown {
  const short = (key: string, value: unknown): unknown => {
    if (RULES.includes(key) && typeof value !== "object") return undefined;
    if (key === "examples" || key === "additionalProperties") return undefined;
    if (key === "maximum" && value === Number.MAX_SAFE_INTEGER) return undefined;
    if (key === "enum" && Array.isArray(value) && value.length > MAX_WORDS) return undefined;
    if (key === "patternProperties") return undefined;
    return value;
  };
  return JSON.parse(JSON.stringify(plain(schema), short));
}

/** The output schema of every tool: the envelope, and the names of the result's members. Members without a value are absent. */
export function outputSchemaOf({ result }: Pick<Tool, "result">): Record<string, unknown> {
  const members = Object.entries<TSchema>(result.properties ?? {});
  const properties = Object.fromEntries(members.map(([name, schema]) => [name, typeOf(schema)]));
  return {
    type: "object",
    properties: {
      ok: { type: "boolean" },
      result: { type: "object", ...(members.length > 0 ? { properties } : {}) },
      code: { type: "string" },
      detail: { type: "string" },
      hint: { type: "string" },
    },
    required: ["ok"],
  };
}

const TYPES = ["string", "integer", "number", "boolean", "array", "object"];

function typeOf({ type }: TSchema): object {
  return TYPES.includes(type) ? { type } : {};
}

/**
 * Owns what an MCP tool is: an operation as a model sees it, whose arguments are the operation's parameters, query and body
 * in one object, and how its schemas are told to clients.
 */
import { type TObject, type TProperties, type TSchema, Type } from "@sinclair/typebox";
import { fields, nullable, type Operation, plain } from "./contract.ts";

/** What a client may assume of a call before it makes it. */
export interface ToolHints {
  readOnlyHint: boolean;
  destructiveHint: boolean;
  idempotentHint: boolean;
  openWorldHint: boolean;
}

export interface Tool {
  name: string;
  title: string;
  /** The operation that the call is; a tool that goes on where it left off uses others as well. */
  operation: Operation;
  description: string;
  input: TObject;
  /** What `result` is when the call succeeded. */
  result: TSchema;
  hints: ToolHints;
}

interface ToolDraft {
  operation: Operation;
  /** The operation's own if absent. */
  name?: string;
  title: string;
  /** For a model that has never seen the product: what it does, and what to know before. */
  about: string;
  /** What to call after it. */
  next: string;
  example: Record<string, unknown>;
  /** Arguments of the operation that the tool does not have. */
  without?: readonly string[];
  /** Arguments that the operation does not have, or has in another way. */
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

/** What an operation takes, wherever it takes it. */
export function argumentsOf({ params, query, body }: Operation): TProperties {
  const inBody = body === null || body === "bytes" ? {} : body.properties;
  return { ...params.properties, ...query.properties, ...inBody };
}

/** An object of any fields: said so, since some clients read a schema that says nothing as a mistake. */
const anything = Type.Object({}, { additionalProperties: true });

/** The call that continues where this one stopped. */
export const nextCall = fields({ tool: Type.String(), arguments: anything });

/** An output that may tell how the call goes on. */
export function continued(output: TObject) {
  return fields({ ...output.properties, next: Type.Optional(nextCall) });
}

const failure = {
  status: Type.Integer({ description: "As in HTTP." }),
  code: Type.String({ description: "One word of a closed list." }),
  detail: Type.String({ description: "One sentence about what is wrong." }),
  hint: nullable(Type.String({ description: "What to do about it." })),
  retryable: Type.Boolean({ description: "Whether the same call may succeed later." }),
  retry_after_seconds: Type.Optional(Type.Integer()),
  request_id: Type.String(),
  details: anything,
  errors: Type.Array(anything, { description: "Every argument that is wrong." }),
  next: Type.Optional(nextCall),
};

/** The form of every answer of a tool: MCP wants one object, so success and failure are its two cases. */
export function outputSchemaOf({ result }: Tool): Record<string, unknown> {
  const preflight = Type.Object(
    { health: Type.Optional(anything), usage: Type.Optional(anything) },
    { description: "health and usage, which the service checked before your first change." },
  );
  return {
    type: "object",
    properties: undescribed({ ok: Type.Boolean(), result, preflight, ...failure }),
    required: ["ok"],
    additionalProperties: false,
    oneOf: [
      { properties: { ok: { const: true } }, required: ["result"] },
      { properties: { ok: { const: false } }, required: ["status", "code", "detail", "hint", "retryable"] },
    ],
  };
}

/** What a field of an answer means is in the interface's document; a list of tools is read by models, who pay for each word. */
function undescribed(schemas: object): Record<string, unknown> {
  const isWords = (key: string, value: unknown) => key === "description" && typeof value === "string";
  const dropped = (key: string, value: unknown) => (isWords(key, value) || key === "examples" ? undefined : value);
  return JSON.parse(JSON.stringify(plain(schemas), dropped));
}

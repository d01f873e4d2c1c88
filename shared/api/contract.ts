/**
 * Type of an operation. Every operation of the interface is one value of this type, once, in the noun's own file; REST, MCP, OpenAPI, audit
 * names, the guest's gateway and the sweeping tests are derived from operations.ts.
 */
import { FormatRegistry, Kind, type Static, type TObject, type TSchema, Type, TypeRegistry } from "@sinclair/typebox";
import type { ErrorCode } from "./errors.ts";
import type { OwnHeader } from "./headers.ts";

export const SCOPES = [
  "rooms:read",
  "rooms:write",
  "sandboxes:read",
  "sandboxes:write",
  "exec",
  "ports:write",
  "drive:read",
  "drive:write",
  "fabric:read",
  "fabric:write",
  "terminal",
  "templates:write",
  "audit:read",
  "usage:read",
  "keys:write",
  "org:admin",
] as const;
export type Scope = (typeof SCOPES)[number];

/** Read-only scopes: every session of the web has them, whatever its role. */
export const READ_SCOPES = [
  "rooms:read",
  "sandboxes:read",
  "drive:read",
  "fabric:read",
  "audit:read",
  "usage:read",
] as const satisfies readonly Scope[];

/** Allowed callers: a key with the scope, any key, a person's session, the operator's key, or anyone. */
export type Access = Scope | "key" | "account" | "operator" | "open";

export interface Operation {
  /** snake_case; also the name of the MCP tool, if there is one. */
  name: string;
  /** Its name, or its group's name, in /v1/config, for parts that exceed the tools of the MCP layer. */
  extension?: string;
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Path with `{name}` parameters; a final `{name*}` matches the rest of the path. */
  path: string;
  /** Other HTTP paths of the same operation, with the same parameters. */
  aliases?: readonly string[];
  summary: string;
  description?: string;
  access: Access;
  /** A direct caller on the host itself, without a proxy, needs no key. */
  openToHost?: true;
  /** The operator's key is accepted as well. */
  openToOperator?: true;
  params: TObject;
  query: TObject;
  /** Request headers that it reads, in addition to those that every call may have. */
  headers?: readonly OwnHeader[];
  /** Fields of the JSON body; `bytes`: the body is the file itself. */
  body: TObject | "bytes" | null;
  /**
   * A list in the body of objects that could be separate calls: each counts as one for the caller's rate limit, and is validated
   * separately.
   */
  many?: string;
  output: TSchema;
  /** Names of success outcomes and their HTTP status; the first is the usual one. */
  outcomes: Record<string, number>;
  /** URL of the created resource, made of the output's fields: the Location header. */
  location?: string;
  /** Media types of the response besides JSON. */
  bytesOutput?: string[];
  errors: ErrorCode[];
  /** Event name in the audit; null for an operation that reveals nothing about an organization. */
  audit: string | null;
  /** A user's session may also call it, within the user's role, although it is not read-only. */
  ofAccount?: true;
  /** It is read-only: a person's session may call it whatever its role, though keys need a scope that also allows writes. */
  watched?: true;
  /** The session's user must have re-authenticated recently. */
  wantsProof?: true;
  /** The answer has a secret: the copy stored for a retry can be decrypted only with the caller's own key. */
  secretOutput?: true;
  /** It adds no data but its own record, so it is executed even if the disk is nearly full. DELETE always is. */
  onFullDisk?: true;
  /** Maximum bytes of the body; the default suffices for all but file contents. */
  maxBodyBytes?: number;
  example?: { body?: unknown; query?: Record<string, string> };
}

export const DEFAULT_MAX_BODY_BYTES = 1024 * 1024;

/** An operation whose name and schema types are preserved. */
export function operation<Name extends string, Definition extends Operation & { name: Name }>(
  definition: Definition,
): Definition {
  return definition;
}

/** Input of a verb: path parameters, query and body in one object. */
export type InputOf<Op extends Operation> = Static<Op["params"]> &
  Static<Op["query"]> &
  (Op["body"] extends TObject ? Static<Op["body"]> : unknown);

export type OutputOf<Op extends Operation> = Static<Op["output"]>;

/** An object schema with exactly these fields. */
export function fields<T extends Record<string, TSchema>>(properties: T) {
  return Type.Object(properties, { additionalProperties: false });
}

export const NONE = fields({});

/** Property in which a schema has its name. */
export const NAME = Symbol("name");

interface NamedOperation {
  name: string;
  /** Description of the schema when it was named. */
  description: string | undefined;
}

/** A schema with a name for documents and SDKs, wherever it is used; its description may differ there. */
export function named<T extends object>(name: string, schema: T): T {
  return { ...schema, [NAME]: { name, description: (schema as { description?: string }).description } };
}

export function nameOf(schema: object): NamedOperation | null {
  return (schema as { [NAME]?: NamedOperation })[NAME] ?? null;
}

/** A value or null. */
export function nullable<T extends TSchema>(schema: T) {
  return Type.Union([schema, Type.Null()], schema.description ? { description: schema.description } : {});
}

const WORDS = "Words";
TypeRegistry.Set<{ enum: string[] }>(WORDS, (schema, value) => schema.enum.includes(String(value)));

/** A closed set of words. */
export function oneOf<const T extends readonly string[]>(words: T, options: Record<string, unknown> = {}) {
  return Type.Unsafe<T[number]>({ [Kind]: WORDS, type: "string", enum: [...words], ...options });
}

// Needed for checking values against the schema: without it, every timestamp is rejected.
FormatRegistry.Set(
  "date-time",
  (text) => /^\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)$/.test(text) && !Number.isNaN(Date.parse(text)),
);
export const timestamp = Type.String({ format: "date-time", examples: ["2026-01-31T12:00:00.000Z"] });

/** A named object schema. */
export function record<T extends Record<string, TSchema>>(name: string, properties: T) {
  return named(name, fields(properties));
}

/** A page of a list, named after its items. */
export function page<T extends TSchema>(item: T) {
  const list = fields({ items: Type.Array(item), next_cursor: nullable(Type.String()) });
  const of = nameOf(item);
  return of === null ? list : named(`${of.name}Page`, list);
}

/** The last event of a stream that cannot continue. */
export const errorEvent = record("ErrorEvent", {
  type: oneOf(["error"]),
  code: Type.String(),
  detail: Type.String(),
  retryable: Type.Boolean(),
});

export const MAX_PAGE = 1000;

/** A cursor that is valid on all hosts has a position for each: about 24 characters. */
export const MAX_CURSOR_CHARACTERS = 4096;

/** `limit` and `cursor` of a list; `limit` arrives as text and is parsed as a number. */
export const pageQuery = {
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: MAX_PAGE, description: "Most items to return; 100 if absent." }),
  ),
  cursor: Type.Optional(
    Type.String({ maxLength: MAX_CURSOR_CHARACTERS, description: "next_cursor of the previous page, unchanged." }),
  ),
};
export const DEFAULT_PAGE = 100;

/** A schema for external readers: without the fields that only our own checks use. */
export function plain(schema: object): Record<string, unknown> {
  return JSON.parse(
    JSON.stringify(schema, (key, value: unknown) => (key === "code" && typeof value === "string" ? undefined : value)),
  );
}

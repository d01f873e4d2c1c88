/**
 * Examples of responses in the OpenAPI document: generated from the schemas, so that each response has a valid one, with the field values
 * of example-values.ts.
 */
import { ERRORS, type ErrorCode, errorKind, type Problem } from "../../../shared/api/errors.ts";
import { spelled } from "../../../shared/api/spelling.ts";
import { REQUEST_ID, STORY } from "./example-values.ts";
import { REFUSALS } from "./refusals.ts";

type Schema = Record<string, unknown>;

/**
 * A value that is valid for the schema, as far as the story has one. `name` is the field's, `parent` that of the containing field: for the
 * whole response, and for the items of a list, the operation's area.
 */
export function exampleOf(schema: Schema, name: string, parent = ""): unknown {
  const { examples, enum: words, anyOf, type } = schema;
  const example = [...(STORY[`${parent}.${name}`] ?? []), ...(STORY[name] ?? [])].find((value) => fits(schema, value));
  if (example !== undefined) return example;
  if (Array.isArray(words)) return words[0];
  if (Array.isArray(examples)) return examples[0];
  // For a nullable type, the example of its non-null part.
  if (Array.isArray(anyOf)) return exampleOf(anyOf[0] as Schema, name, parent);
  if (type === "object") return objectOf(schema, name);
  if (type === "array") return arrayOf(schema, name, parent);
  // The document then lacks a valid example, which the tests detect.
  return undefined;
}

function arrayOf({ items }: Schema, name: string, parent: string): unknown[] | undefined {
  const each = exampleOf(items as Schema, name === "items" ? parent : name.replace(/ies$/, "y").replace(/s$/, ""));
  return each === undefined ? undefined : [each];
}

function objectOf({ properties }: Schema, parent: string): Schema {
  const fields = Object.entries((properties ?? {}) as Record<string, Schema>);
  const entries = fields.map(([name, schema]): [string, unknown] => [name, exampleOf(schema, name, parent)]);
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
}

/** The usual example with the differences of one response; of a list, the first item is the base. */
export function changed(usual: unknown, change: unknown): unknown {
  if (Array.isArray(usual) && Array.isArray(change) && usual.length > 0 && isObject(change[0])) {
    return change.map((each, index) => changed(usual[index] ?? usual[0], each));
  }
  if (!isObject(usual) || !isObject(change) || Object.keys(change).length === 0) return change;
  const fields = Object.entries(change).map(([name, value]) => [name, changed(usual[name], value)]);
  return { ...usual, ...Object.fromEntries(fields) };
}

function isObject(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Checks only type and enumeration: the candidates are the same few values. */
function fits({ type, anyOf, enum: words }: Schema, value: unknown): boolean {
  if (Array.isArray(anyOf)) return anyOf.some((each: Schema) => fits(each, value));
  if (Array.isArray(words)) return words.includes(value);
  const own = value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
  return type === undefined || type === own || (type === "integer" && own === "number");
}

/** One example per code, by name. */
export function problemExamples(): Record<string, { summary: string; value: Problem }> {
  const codes = Object.keys(ERRORS) as ErrorCode[];
  return Object.fromEntries(codes.map((code) => [code, { summary: ERRORS[code].title, value: problemOf(code) }]));
}

function problemOf(code: ErrorCode): Problem {
  const { status, title, retryable, hint } = errorKind(code);
  return {
    type: `urn:roomd:problem:${code}`,
    title,
    status,
    detail: `${title}.`,
    code,
    retryable: retryable ?? false,
    request_id: REQUEST_ID,
    details: {},
    errors: [],
    hint: hint === undefined ? null : spelled(hint, { kind: "http" }),
    ...REFUSALS[code],
  };
}

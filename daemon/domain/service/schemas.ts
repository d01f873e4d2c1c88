/** Schemas in the OpenAPI document: in the form that client generators support, with each named schema defined once. */
import { isDeepStrictEqual } from "node:util";
import { NAME, nameOf } from "../../../shared/api/contract.ts";
import type { Steps } from "../../core/loop/index.ts";

export type Json = Record<string, unknown>;

/** Without keywords that only our own checks use. */
export function requestSchema(schema: object): Json {
  return shown(schema, []) as Json;
}

/** Responses may get further fields, which clients ignore. */
export function answerSchema(schema: object): Json {
  return shown(schema, ["additionalProperties"]) as Json;
}

function shown(value: unknown, without: readonly string[]): unknown {
  if (Array.isArray(value)) return value.map((each) => shown(each, without));
  if (!isObject(value)) return value;
  const isKept = ([key, inner]: [string, unknown]) =>
    !without.includes(key) && !(key === "code" && typeof inner === "string");
  const kept = Object.entries(value).filter(isKept);
  const schema = orNull(Object.fromEntries(kept.map(([key, inner]) => [key, shown(inner, without)])));
  return nameOf(value) === null ? schema : { ...schema, [NAME]: nameOf(value) };
}

/** Converts a nullable schema to a list of types, unless its non-null part has a name or several forms. */
function orNull(schema: Json): Json {
  const { anyOf, ...others } = schema;
  if (!Array.isArray(anyOf) || anyOf.length !== 2 || anyOf[1].type !== "null") return schema;
  const [something]: Json[] = anyOf;
  if (something === undefined || nameOf(something) !== null || typeof something.type !== "string") return schema;
  const { enum: words } = something;
  return {
    ...something,
    ...others,
    type: [something.type, "null"],
    ...(Array.isArray(words) ? { enum: [...words, null] } : {}),
  };
}

/** Moves each named schema of a document to `schemas` and leaves a reference. Throws if two have the same name. */
export function withReferences(value: unknown, schemas: Json): unknown {
  if (Array.isArray(value)) return value.map((each) => withReferences(each, schemas));
  if (!isObject(value)) return value;
  const own = Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, withReferences(inner, schemas)]));
  const name = nameOf(value);
  if (name === null) return own;
  const { description, ...rest } = own;
  const schema = name.description === undefined ? rest : { description: name.description, ...rest };
  if (schemas[name.name] !== undefined && !isDeepStrictEqual(schemas[name.name], schema)) {
    throw new Error(`two schemas have the name ${name.name}`);
  }
  schemas[name.name] = schema;
  const reference = { $ref: `#/components/schemas/${name.name}` };
  return description === name.description ? reference : { ...reference, description };
}

/**
 * Moves each response that several operations have to `answers` and leaves a reference. Its name consists of its status and its codes,
 * which its description has; of responses that differ only in their headers, the later ones have a number.
 */
export function* sharedAnswers(responses: readonly Record<string, unknown>[], answers: Json): Steps<void> {
  const places = new Map<string, { of: Record<string, unknown>; status: string }[]>();
  for (const of of responses) {
    for (const [status, answer] of Object.entries(of)) {
      const text = `${status} ${JSON.stringify(answer)}`;
      places.set(text, [...(places.get(text) ?? []), { of, status }]);
    }
    yield;
  }
  for (const used of places.values()) {
    const [{ of, status }] = used as [(typeof used)[0]];
    if (used.length < 2) continue;
    const answer = of[status] as { description: string };
    const base = [status, ...answer.description.replaceAll(/[^\w, -]/g, "").split(/,? /)].join("-");
    let name = base;
    for (let next = 2; answers[name] !== undefined; next++) name = `${base}-${next}`;
    answers[name] = answer;
    for (const place of used) place.of[place.status] = { $ref: `#/components/responses/${name}` };
  }
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null;
}

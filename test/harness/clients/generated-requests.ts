/**
 * Random requests generated from an OpenAPI document: values that its schemas accept and reject, existing and unknown names, and headers
 * and bodies that no client of ours sends. The tests send them and define the allowed responses. Waits are milliseconds, so that each
 * response comes soon.
 */
import fc from "fast-check";
import type { Json } from "../daemon.ts";

/** One operation of the document. */
export interface Described {
  operationId: string;
  method: string;
  path: string;
  described: Json;
}

/** Placeholder for a name from an earlier response: the `nth` of those known when the request is sent. */
export class Known {
  readonly name: string;
  readonly nth: number;

  constructor(name: string, nth: number) {
    this.name = name;
    this.nth = nth;
  }
}

export interface GeneratedRequest {
  operation: Described;
  params: Record<string, unknown>;
  query: Record<string, unknown>;
  /** Goes after the query as it is. */
  more: string;
  /** A value is sent as JSON, bytes as they are. */
  body: unknown;
  headers: Record<string, string>;
}

export function operationsOf(document: Json): Described[] {
  return Object.entries<Json>(document.paths).flatMap(([path, methods]) =>
    Object.entries<Json>(methods).map(([method, described]) => ({
      operationId: described.operationId,
      method: method.toUpperCase(),
      path,
      described,
    })),
  );
}

/** `keys` are values of the Authorization header, the first of which may do everything. */
export function generatedRequests(operations: readonly Described[], keys: readonly string[]) {
  return fc.oneof(...operations.map((operation) => requestTo(operation, keys)));
}

function requestTo(operation: Described, keys: readonly string[]): fc.Arbitrary<GeneratedRequest> {
  const { parameters, requestBody } = operation.described;
  const within = (location: string) => parameters.filter((each: Json) => each.in === location);
  const params = fc.record(
    Object.fromEntries(within("path").map(({ name, schema }: Json) => [name, named(name, schema, 0.06)])),
  );
  const query = fieldsOf(
    Object.fromEntries(within("query").map(({ name, schema }: Json) => [name, schema])),
    within("query").flatMap(({ name, required }: Json) => (required ? [name] : [])),
  );
  const content = requestBody?.content["application/json"];
  const body = requestBody
    ? content
      ? jsonBody(content)
      : fc.uint8Array({ maxLength: 2000 })
    : fc.constant(undefined);
  const more = fc.oneof(
    { weight: 20, arbitrary: fc.constant("") },
    { weight: 1, arbitrary: fc.constantFrom(...ODD_QUERIES) },
  );
  const headers = headersFor(keys);
  return fc.record({ operation: fc.constant(operation), params, query, more, body, headers }).map(settle);
}

/** A follower without an end would be waited for. */
function settle(request: GeneratedRequest): GeneratedRequest {
  const { operation, query, body } = request;
  const takes = (name: string) => operation.described.parameters.some((each: Json) => each.name === name);
  if (takes("follow")) query.follow = "false";
  const properties = operation.described.requestBody?.content["application/json"]?.schema.properties ?? {};
  if (isRecord(body)) {
    for (const name of Object.keys(properties)) if (isWait(name) && body[name] === undefined) body[name] = 5;
  }
  return request;
}

function jsonBody({ schema, example }: Json): fc.Arbitrary<unknown> {
  const rightful = fieldsOf(schema.properties, schema.required ?? []);
  const near = fc
    .tuple(
      fc.dictionary(
        fc.constantFrom(...Object.keys(schema.properties), "constructor", "x".repeat(300), "é\u0000"),
        hostile,
        { maxKeys: 2 },
      ),
    )
    .map(([change]) => ({ ...example, ...change }));
  return fc.oneof(
    { weight: 8, arbitrary: rightful },
    { weight: 4, arbitrary: near },
    { weight: 2, arbitrary: fc.constant(structuredClone(example)) },
    { weight: 1, arbitrary: hostile },
    { weight: 1, arbitrary: fc.constantFrom(...NO_JSON).map((text) => Buffer.from(text)) },
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 40 }) },
  );
}

/** Most of the required fields, and some of the others. */
function fieldsOf(
  properties: Record<string, Json>,
  required: readonly string[],
): fc.Arbitrary<Record<string, unknown>> {
  const fields = Object.entries(properties).map(([name, schema]) => {
    const value = named(name, schema, 0.04);
    const chance = required.includes(name) ? 0.96 : 0.3;
    return fc
      .tuple(fc.double({ min: 0, max: 1, noNaN: true }), value)
      .map(([drawn, made]) => (drawn <= chance ? [[name, made]] : []));
  });
  return fc.tuple(...fields).map((made) => Object.fromEntries(made.flat()));
}

/** A name is mostly an existing one; a wait is short; `wild` is the share of values outside of the schema. */
function named(name: string, schema: Json, wild: number): fc.Arbitrary<unknown> {
  const own = isWait(name) ? shortWait : fitting(schema);
  const known = fc.nat(40).map((nth) => new Known(name, nth));
  const fair = KNOWABLE.has(name) ? fc.oneof({ weight: 5, arbitrary: known }, { weight: 1, arbitrary: own }) : own;
  const share = Math.round(wild * 100);
  return fc.oneof(
    { weight: 100 - share, arbitrary: fair },
    { weight: share, arbitrary: isWait(name) ? noWait : hostile },
  );
}

/** Fields whose values the tests learn from responses. */
export const KNOWABLE: ReadonlySet<string> = new Set(
  [
    [
      "room_id",
      "source_room_id",
      "org_id",
      "sandbox",
      "agent_id",
      "source",
      "destination",
      "message_id",
      "reply_to",
      "barrier_id",
    ],
    [
      "path",
      "from",
      "to",
      "key_id",
      "ssh_key_id",
      "access_id",
      "exec_id",
      "terminal_id",
      "recording_id",
      "snapshot_id",
      "checkpoint_id",
      "webhook_id",
      "delivery_id",
      "port",
      "cursor",
      "topic",
    ],
    ["template_id", "public_key"],
  ].flat(),
);

const isWait = (name: string) => /(^|_)(wait|timeout)_ms$/.test(name);
const shortWait = fc.nat(20);
const noWait = fc.constantFrom<unknown[]>(-1, 1.5, "5", null, 2 ** 53, [], true);

function fitting(schema: Json): fc.Arbitrary<unknown> {
  if (schema.enum) return fc.constantFrom(...schema.enum);
  if (Array.isArray(schema.type)) return fc.oneof(...schema.type.map((type: string) => fitting({ ...schema, type })));
  if (schema.anyOf) return fc.oneof(...schema.anyOf.map(fitting));
  switch (schema.type) {
    case "string":
      return textOf(schema);
    case "integer":
    case "number":
      return numberOf(schema);
    case "boolean":
      return fc.boolean();
    case "null":
      return fc.constant(null);
    case "array":
      return fc.array(fitting(schema.items), {
        minLength: schema.minItems ?? 0,
        maxLength: (schema.minItems ?? 0) + 4,
      });
    case "object":
      return objectOf(schema);
    default:
      return fc.jsonValue({ maxDepth: 3 });
  }
}

function textOf({ pattern, minLength = 0, maxLength = 200, examples, contentEncoding }: Json): fc.Arbitrary<string> {
  const likely = examples ? [fc.constantFrom(...(examples as string[]))] : [];
  if (contentEncoding === "base64") return fc.oneof(fc.base64String({ maxLength: 60 }), fc.string({ maxLength: 9 }));
  // Negative lookaheads are dropped: the daemon rejects the values that they exclude.
  if (pattern) return fc.oneof(fc.stringMatching(new RegExp(pattern.replaceAll(/\(\?![^)]*\)/g, ""))), ...likely);
  return fc.oneof(fc.string({ unit: "grapheme", minLength, maxLength: Math.min(maxLength, 200) }), ...likely);
}

function numberOf({ type, minimum = -(2 ** 31), maximum = 2 ** 40 }: Json): fc.Arbitrary<number> {
  const edges = fc.constantFrom(minimum, maximum, minimum - 1, maximum + 1);
  const low = fc.integer({ min: minimum, max: Math.min(maximum, minimum + 3) });
  if (type === "number") return fc.oneof(fc.double({ min: minimum, max: maximum, noNaN: true }), edges);
  return fc.oneof(
    low,
    fc.maxSafeInteger().map((drawn) => minimum + (Math.abs(drawn) % (maximum - minimum + 1))),
    edges,
  );
}

function objectOf(schema: Json): fc.Arbitrary<Record<string, unknown>> {
  const [[names, values] = []] = Object.entries<Json>(schema.patternProperties ?? {});
  if (names === undefined) return fieldsOf(schema.properties ?? {}, schema.required ?? []);
  return fc.dictionary(fc.stringMatching(new RegExp(names)), fitting(values), { maxKeys: 4 });
}

const ODD_QUERIES = [
  "%ff=1",
  "limit=%FF",
  "&&&=",
  "limit",
  "%",
  "nonsense=1",
  "limit=1&limit=2",
  "a=b?c=d",
  "__proto__=1",
];

const NO_JSON = [
  "",
  "{",
  "null",
  "[]",
  '"x"',
  "7",
  "\0",
  "{}}",
  '{"a":1e999}',
  '{"a":"\\ud800"}',
  "[".repeat(5000),
  "NaN",
  '{"a":1,"a":2}',
];

/** Values that no field should receive, and most fields should reject. */
const hostile: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown[]>(
    ...[null, true, false, -1, 0, 1, 1.5, 2 ** 53, -(2 ** 63), 1e308, 5e-324, "", " ", "0", "-0", "true", "null"],
    ...[
      "\0",
      "a\0b",
      "\ud800",
      "é",
      "e\u0301",
      "\u202e",
      "\ufeff",
      "💥".repeat(50),
      "x".repeat(5000),
      "%00",
      "%ff",
      "%2e%2e",
    ],
    ...[
      "..",
      "../../etc/passwd",
      "/",
      "//",
      "/mnt/drive",
      "/mnt/drive/..",
      "a/../b",
      ".",
      "~",
      "C:\\x",
      "\\",
      "'",
      '"',
      "' OR 1=1 --",
    ],
    ...[
      "<script>",
      "$(x)",
      "{{x}}",
      "\r\nX-A: b",
      "a\nb",
      "*",
      ">",
      "self",
      "sbx_",
      "__proto__",
      "constructor",
      "toString",
    ],
    ...[
      [],
      {},
      [[]],
      [null],
      { a: { b: { c: {} } } },
      ["x".repeat(300)],
      Array.from({ length: 1200 }, (_, index) => index),
    ],
  ),
  fc.string({ unit: "binary", maxLength: 40 }),
  fc.jsonValue({ maxDepth: 3 }),
);

/** Mostly the headers of a client; other headers one at a time, by name. */
function headersFor(keys: readonly string[]): fc.Arbitrary<Record<string, string>> {
  const [right = ""] = keys;
  const odd: Record<string, readonly string[]> = {
    authorization: [
      ...keys,
      "",
      "Bearer",
      "Bearer ",
      "Basic eA==",
      `bearer ${right.slice(7)}`,
      `Bearer key-${"A".repeat(43)}`,
      "x".repeat(4000),
    ],
    accept: [
      "application/x-ndjson",
      "text/event-stream",
      "text/html",
      "*/*",
      "application/xml;q=0",
      ";;;",
      "x".repeat(900),
    ],
    "content-type": [
      "text/plain",
      "application/json; charset=utf-16",
      "APPLICATION/JSON",
      "application/octet-stream",
      "multipart/form-data",
      "json",
      ";",
    ],
    "x-request-id": ["mine-1", "a b", "x".repeat(129), "<b>", "req_1"],
    "idempotency-key": ["once", "twice", "thrice", "x".repeat(255), "x".repeat(256), "a b", "\u00e9"],
    range: [
      "bytes=0-3",
      "bytes=-2",
      "bytes=5-",
      "bytes=9-1",
      "bytes=0-1,3-4",
      "bytes=99999999999-",
      "lines=1-2",
      "bytes=a-b",
      "bytes=-0",
    ],
    "if-match": ["*", '"x"', 'W/"x"', "x", '"', "x".repeat(500)],
    "if-none-match": ["*", '"x"', "x, y"],
    "last-event-id": ["0", "1", "-1", "x", "99999999999999999999", "1.5"],
    "content-encoding": ["gzip", "identity"],
    origin: ["null", "http://elsewhere.invalid"],
    cookie: ["a=b", "roomd=x"],
    "x-forwarded-for": ["10.0.0.1"],
    expect: ["100-continue"],
    te: ["trailers"],
  };
  const one = fc
    .constantFrom(...Object.entries(odd))
    .chain(([name, values]) => fc.constantFrom(...values).map((value) => [name, value]));
  return fc
    .oneof({ weight: 3, arbitrary: fc.constant([]) }, { weight: 2, arbitrary: fc.array(one, { maxLength: 2 }) })
    .map((some) => ({ authorization: right, ...Object.fromEntries(some) }));
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array);
}

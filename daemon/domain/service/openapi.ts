/** The API as an OpenAPI 3.1 document, generated from the list of operations. */

import type { TObject, TSchema } from "@sinclair/typebox";
import { named, nameOf, type Operation, plain, READ_SCOPES } from "../../../shared/api/contract.ts";
import { ERRORS, type ErrorCode, errorKind } from "../../../shared/api/errors.ts";
import { REQUEST_HEADERS, RESPONSE_HEADERS, requestHeadersOf, responseHeadersOf } from "../../../shared/api/headers.ts";
import { operations } from "../../../shared/api/operations.ts";
import { FILM_TYPE, RECORDING_TYPE } from "../../../shared/api/recordings.ts";
import { openapiGet } from "../../../shared/api/service.ts";
import { VERSION } from "../../../shared/version.ts";
import { type Bound, bind } from "../../core/call/operation.ts";
import { inPieces, loopTime, Pieces, type Steps, wholly } from "../../core/loop/index.ts";
import { ANSWERS, FIGURES } from "./example-values.ts";
import { changed, exampleOf, problemExamples } from "./examples.ts";
import { answerSchema, type Json, requestSchema, sharedAnswers, withReferences } from "./schemas.ts";
import { postedEvents } from "./webhook-events.ts";

const SWITCHING_PROTOCOLS = 101;
const BYTES = "application/octet-stream";
const TEXT = "text/plain";
/** Types without a description of their content. */
const WHOLE: readonly string[] = [BYTES, "image/png", RECORDING_TYPE, FILM_TYPE];
/** Descriptions of the areas of the API. */
const AREAS = {
  service: "Health of the service, and the OpenAPI document.",
  metrics: "Figures for Prometheus.",
  config: "Limits, defaults and guarantees.",
  key: "API keys, and the identity of the caller's key.",
  id: "The resource with an id.",
  host: "The hosts of the service.",
  org: "Organizations.",
  webhook: "URLs to which events are sent.",
  billing: "Buying a plan.",
  user: "A person's own account.",
  auth: "Sessions and sign-in methods of a user.",
  oauth: "Clients that a user has authorized.",
  member: "The people of an organization.",
  usage: "Usage and credits of an organization.",
  top: "Current resource use of sandboxes.",
  room: "Rooms: each holds one run.",
  sandbox: "Sandboxes: virtual machines, one for each agent.",
  snapshot: "Saved states of a sandbox.",
  checkpoint: "Consistent saved states of a room.",
  egress: "Allowed and recorded outbound connections of sandboxes.",
  exec: "Commands and terminals in a sandbox.",
  file: "Files in a sandbox: its own disk and its mounts.",
  screen: "A sandbox's screen, and recordings of it.",
  ssh: "Keys and passwords for SSH.",
  port: "Servers in a sandbox that are reached by URL.",
  drive: "The room's shared drive, which is /mnt/drive in each sandbox.",
  message: "Messages between the agents of a room.",
  barrier: "Synchronization points of a room's agents.",
  template: "Saved machines from which sandboxes start.",
  audit: "Records of actions and actors, in a tamper-evident chain.",
};
const ABOUT =
  "Rooms of sandboxes for groups of AI agents. Errors are application/problem+json with a stable code; every POST takes an Idempotency-Key; lists continue with cursor = next_cursor; clients must ignore unknown fields in answers. Models use the same operations through MCP at /mcp.";

export function makeOpenapi(): Bound {
  let document: Promise<Json> | undefined;
  return bind(openapiGet, {
    run: async () => {
      document ??= inPieces(openapiSteps(VERSION), new Pieces(loopTime, "host", openapiGet.name));
      return { outcome: "ok", body: await document };
    },
  });
}

interface Described {
  responses: Json;
}

interface Document extends Json {
  paths: Record<string, Record<string, Described>>;
  components: Json;
}

/** The document as served: parts common to several places are defined once, under their name. */
export const openapiDocument = (version: string): Json => wholly(openapiSteps(version));

/** The same, one operation per step. */
function* openapiSteps(version: string): Steps<Json> {
  const schemas: Json = {};
  const responses: Json = {};
  const { paths, components, ...document } = yield* documentSteps(version, (part) => withReferences(part, schemas));
  const methods = Object.values(paths).flatMap((each) => Object.values(each));
  yield* sharedAnswers(
    methods.map((each) => each.responses),
    responses,
  );
  const webhooks = withReferences(postedEvents(), schemas);
  const inOrder = Object.entries(schemas).sort(([one], [other]) => (one < other ? -1 : 1));
  return {
    ...document,
    paths,
    webhooks,
    components: { ...components, responses, schemas: Object.fromEntries(inOrder) },
  };
}

/** The same with every schema inlined. */
export const inlineDocument = (version: string): Json => wholly(inlineSteps(version));

export function* inlineSteps(version: string): Steps<Json> {
  const { components, ...document } = yield* documentSteps(version, (part) => part);
  return { ...document, webhooks: postedEvents(), components };
}

function* documentSteps(version: string, finished: (part: unknown) => unknown): Steps<Document> {
  const paths: Document["paths"] = {};
  for (const operation of Object.values<Operation>(operations)) {
    const path = operation.path.replace("*}", "}");
    const described = finished(describe(operation)) as Described;
    paths[path] = { ...paths[path], [operation.method.toLowerCase()]: described };
    yield;
  }
  const components = {
    securitySchemes: { apiKey: { type: "http", scheme: "bearer", description: "An API key, key-…" } },
    parameters: PARAMETERS,
    headers: HEADERS,
    examples: problemExamples(),
  };
  return {
    openapi: "3.1.0",
    info: {
      title: "roomd",
      version,
      description: ABOUT,
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/" }],
    security: [{ apiKey: [] }],
    tags: Object.entries(AREAS).map(([name, description]) => ({ name, description })),
    paths,
    components: finished(components) as Json,
  };
}

function describe(operation: Operation): Json {
  const { access } = operation;
  return {
    operationId: operation.name,
    summary: operation.summary,
    ...(operation.description ? { description: operation.description } : {}),
    // The area has the name that it has in the audit log.
    tags: [areaOf(operation)],
    ...(access === "open" ? { security: [] } : {}),
    ...(access === "open" || access === "key" ? {} : { "x-scope": access }),
    ...(operation.watched ? { "x-watched": true } : {}),
    parameters: [
      ...parametersOf(operation.params, "path"),
      ...parametersOf(operation.query, "query", operation.example?.query),
      ...requestHeadersOf(operation).map((each) => ({
        $ref: `#/components/parameters/${REQUEST_HEADERS[each].name}`,
      })),
    ],
    ...requestBodyOf(operation),
    responses: responsesOf(operation),
  };
}

function areaOf({ audit }: Operation): string {
  return audit?.split(".")[0] ?? "service";
}

function parametersOf(schema: TObject, location: "path" | "query", examples?: Record<string, string>): Json[] {
  const isRequired = (name: string) => location === "path" || (schema.required ?? []).includes(name);
  return Object.entries(schema.properties).map(([name, property]) => ({
    name,
    in: location,
    required: isRequired(name),
    ...(property.description ? { description: property.description } : {}),
    schema: requestSchema(property),
    ...exampleOfParameter(name, property, isRequired(name), examples?.[name]),
  }));
}

/** The parsed value of a query parameter's text; a path parameter or required one has a value in any case. */
function exampleOfParameter(name: string, schema: TSchema, isNeeded: boolean, given?: string): Json {
  if (given !== undefined) return { example: schema.type === "string" ? given : JSON.parse(given) };
  return isNeeded ? { example: exampleOf(plain(schema), name) } : {};
}

function requestBodyOf({ name, body, example }: Operation): Json {
  if (body === null) return {};
  if (body === "bytes") {
    return { requestBody: { required: true, content: { "application/octet-stream": { schema: {} } } } };
  }
  const schema = namedAfter(name, "Request", requestSchema(body));
  const content = { schema, ...(example?.body ? { example: example.body } : {}) };
  return { requestBody: { required: (body.required ?? []).length > 0, content: { "application/json": content } } };
}

/** Names an anonymous object schema with fields after its operation. */
function namedAfter(operation: string, suffix: "Request" | "Result", schema: Json): Json {
  const isNameless = nameOf(schema) === null && Object.keys(schema.properties ?? {}).length > 0;
  const words = operation.split("_").map((word) => word.charAt(0).toUpperCase() + word.slice(1));
  return isNameless ? named([...words, suffix].join(""), schema) : schema;
}

interface OpenApiResponse {
  description: string;
  headers: Json;
  content?: Json;
}

/** Responses by status: successes, including those with a problem's status, and problems. */
function responsesOf(operation: Operation): Record<string, OpenApiResponse> {
  const successes = successesOf(operation);
  const problems = codesOf(operation);
  const statuses = [...new Set([...successes.keys(), ...problems.keys()])].sort((one, other) => one - other);
  return Object.fromEntries(
    statuses.map((status): [number, OpenApiResponse] => {
      const { description, content } = successes.get(status) ?? {};
      const codes = [...(problems.get(status) ?? [])];
      const media = { ...content, ...(codes.length > 0 ? { "application/problem+json": problemOf(codes) } : {}) };
      return [
        status,
        {
          description: [...(description ?? []), ...codes].join(", "),
          headers: headersOf(operation, status, codes),
          ...(Object.keys(media).length > 0 ? { content: media } : {}),
        },
      ];
    }),
  );
}

interface Success {
  description: string[];
  content?: Json;
}

function successesOf(operation: Operation): Map<number, Success> {
  const successes = new Map<number, Success>();
  for (const [outcome, status] of Object.entries(operation.outcomes)) {
    const description = [...(successes.get(status)?.description ?? []), outcome];
    // Data after a change of protocols is no HTTP body.
    const content = status === SWITCHING_PROTOCOLS ? {} : { content: contentOf(operation, status) };
    successes.set(status, { description, ...content });
  }
  if (sendsFile(operation)) {
    successes.set(206, { description: ["the requested part"], content: { [BYTES]: { schema: {} } } });
    successes.set(304, { description: ["If-None-Match matches the file"] });
  }
  return successes;
}

function contentOf(operation: Operation, status: number): Json {
  const { output, bytesOutput = [] } = operation;
  const schema = namedAfter(operation.name, "Result", answerSchema(output));
  const isStream = bytesOutput.includes("text/event-stream");
  const isUntold = Object.keys(schema).length === 0;
  const example = isUntold ? undefined : answerOf(operation, status, exampleOf(plain(output), areaOf(operation)));
  const json: Media = { schema, example };
  const media = bytesOutput.map((type): [string, Media] => {
    if (type === TEXT) return [type, { schema: { type: "string" }, example: FIGURES }];
    if (WHOLE.includes(type)) return [type, { schema: {} }];
    return [type, isStream ? { schema: withPing(schema), example } : lineOf(json)];
  });
  return { ...(isStream || isUntold ? {} : { "application/json": json }), ...Object.fromEntries(media) };
}

interface Media {
  schema: Json;
  example?: unknown;
}

/** A stream has a line, or an event, of this shape for each of its items. */
function withPing(schema: Json): Json {
  return { anyOf: [schema, PING] };
}

const PING = named("PingEvent", {
  type: "object",
  description: "A sign that the stream is alive.",
  required: ["type"],
  properties: {
    type: { type: "string", enum: ["ping"] },
    warnings: { type: "array", items: { type: "string" }, description: "Parts that are currently missing." },
  },
});

/** A list sent as lines has one line per item. */
function lineOf({ schema, example }: Media): Media {
  const { items } = schema.properties as { items: { items: Json } };
  return { schema: items.items, example: (example as { items: unknown[] }).items[0] };
}

/** The example of a response of this status, with the differences of its outcome. */
function answerOf({ name, outcomes }: Operation, status: number, usual: unknown): unknown {
  const [own] = Object.entries(ANSWERS[name as keyof typeof operations] ?? {}).filter(
    ([to]) => outcomes[to] === status,
  );
  return own ? changed(usual, own[1]) : usual;
}

function sendsFile({ bytesOutput }: Operation): boolean {
  return bytesOutput?.includes(BYTES) ?? false;
}

/** The codes of an operation, its own and those of any call, by status. */
function codesOf(operation: Operation): Map<number, Set<ErrorCode>> {
  const codes = new Map<number, Set<ErrorCode>>();
  for (const code of [...operation.errors, ...ownOfFields(operation), ...everywhere(operation)]) {
    const { status: usual, statusInPath } = errorKind(code);
    // template_id in the path, for template_not_found.
    const inPath = Object.hasOwn(operation.params.properties, code.replace(/_not_found$/, "_id"));
    const status = (inPath ? statusInPath : undefined) ?? usual;
    codes.set(status, (codes.get(status) ?? new Set()).add(code));
  }
  return codes;
}

function problemOf(codes: readonly ErrorCode[]): Json {
  return {
    schema: PROBLEM,
    examples: Object.fromEntries(codes.map((code) => [code, { $ref: `#/components/examples/${code}` }])),
  };
}

function headersOf(operation: Operation, status: number, codes: readonly ErrorCode[]): Json {
  const names = responseHeadersOf({ operation, status, codes });
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}

const PARAMETERS: Json = Object.fromEntries(
  Object.values(REQUEST_HEADERS).map(({ name, ...about }) => [name, { name, in: "header", required: false, ...about }]),
);

const HEADERS: Json = Object.fromEntries(
  Object.entries(RESPONSE_HEADERS).map(([name, { on, always = false, ...about }]) => [
    name,
    { required: always, ...about },
  ]),
);

/** Codes of fields that have a code of their own for invalid values. */
function ownOfFields({ params, query, body }: Operation): ErrorCode[] {
  const named = new Set<string>();
  JSON.stringify([params, query, body], (key, value: unknown) => {
    if (key === "code" && typeof value === "string") named.add(value);
    return value;
  });
  return [...named].filter((code): code is ErrorCode => Object.hasOwn(ERRORS, code));
}

function everywhere(operation: Operation): ErrorCode[] {
  const codes: ErrorCode[] = ["invalid_query", "validation_failed", "internal", "shutting_down"];
  // For a name with an invalid encoding.
  if (Object.keys(operation.params.properties).length > 0) codes.push("route_not_found");
  // For a room that is being restored.
  if (Object.hasOwn(operation.params.properties, "room_id")) codes.push("not_ready");
  if (operation.access !== "open")
    codes.push("missing_credentials", "invalid_api_key", "api_key_expired", "rate_limited");
  if (operation.access !== "open" && operation.access !== "key") codes.push("insufficient_scope");
  codes.push(...ofSessions(operation));
  if (operation.method !== "GET") codes.push("disk_full");
  if (operation.method === "POST") codes.push("idempotency_in_progress", "idempotency_key_reused", "history_gone");
  if (operation.body !== null && operation.body !== "bytes") {
    codes.push("invalid_json", "invalid_body", "body_too_large", "unsupported_media_type", "unknown_field");
  }
  return codes;
}

/** Errors returned only to web sessions. */
function ofSessions({ access, ofAccount, watched, wantsProof }: Operation): ErrorCode[] {
  if (access === "open") return [];
  const reads: readonly string[] = ["key", "account", ...READ_SCOPES];
  const isRefused = !ofAccount && !watched && !reads.includes(access);
  return [
    "session_ended",
    "foreign_request",
    ...(isRefused ? (["hub_is_read_only"] as const) : []),
    ...(wantsProof ? (["proof_required"] as const) : []),
  ];
}

const PROBLEM: Json = named("Problem", {
  type: "object",
  description: "RFC 9457 problem details.",
  required: ["type", "title", "status", "detail", "code", "retryable", "request_id", "details", "errors", "hint"],
  properties: {
    type: { type: "string" },
    title: { type: "string" },
    status: { type: "integer" },
    detail: { type: "string" },
    code: { type: "string", enum: Object.keys(ERRORS) },
    retryable: { type: "boolean" },
    request_id: { type: "string" },
    details: { type: "object", additionalProperties: true },
    errors: {
      type: "array",
      items: named("FieldError", {
        type: "object",
        required: ["field", "code", "message"],
        properties: {
          field: { type: "string" },
          code: { type: "string" },
          message: { type: "string" },
          min: { type: "number" },
          max: { type: "number" },
        },
      }),
    },
    hint: { type: ["string", "null"] },
  },
});

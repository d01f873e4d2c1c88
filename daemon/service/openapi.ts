/** Owns the interface as an OpenAPI 3.1 document, read off the list of operations. */
import type { TObject, TSchema } from "@sinclair/typebox";
import { type Operation, plain } from "../../shared/api/contract.ts";
import { ERRORS, type ErrorCode, errorKind } from "../../shared/api/errors.ts";
import { operations } from "../../shared/api/operations.ts";
import { openapiGet } from "../../shared/api/service.ts";
import { VERSION } from "../../shared/version.ts";
import { type Bound, bind } from "../core/operation.ts";
import { exampleOf, problemExamples } from "./examples.ts";

type Json = Record<string, unknown>;

const SWITCHING_PROTOCOLS = 101;
const BYTES = "application/octet-stream";

export function makeOpenapi(): Bound {
  let document: Json | undefined;
  return bind(openapiGet, {
    run: () => {
      document ??= openapiDocument(VERSION);
      return { outcome: "ok", body: document };
    },
  });
}

export function openapiDocument(version: string): Json {
  const paths: Record<string, Json> = {};
  for (const operation of Object.values<Operation>(operations)) {
    const path = operation.path.replace("*}", "}");
    paths[path] = { ...paths[path], [operation.method.toLowerCase()]: describe(operation) };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "roomd",
      version,
      description: "Rooms of sandboxes for groups of AI agents.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    security: [{ apiKey: [] }],
    paths,
    components: {
      securitySchemes: { apiKey: { type: "http", scheme: "bearer", description: "An API key, key-…" } },
      schemas: { Problem: PROBLEM },
      examples: problemExamples(),
      headers: HEADERS,
    },
  };
}

function describe(operation: Operation): Json {
  const { access } = operation;
  return {
    operationId: operation.name,
    summary: operation.summary,
    ...(operation.description ? { description: operation.description } : {}),
    // The area is what the records of the audit call it.
    tags: [operation.audit?.split(".")[0] ?? "service"],
    ...(access === "open" ? { security: [] } : {}),
    ...(access === "open" || access === "key" ? {} : { "x-scope": access }),
    parameters: [
      ...parametersOf(operation.params, "path"),
      ...parametersOf(operation.query, "query", operation.example?.query),
    ],
    ...requestBodyOf(operation),
    responses: withProblems(successesOf(operation), operation),
  };
}

function parametersOf(schema: TObject, where: "path" | "query", examples?: Record<string, string>): Json[] {
  const isRequired = (name: string) => where === "path" || (schema.required ?? []).includes(name);
  return Object.entries(schema.properties).map(([name, property]) => ({
    name,
    in: where,
    required: isRequired(name),
    ...(property.description ? { description: property.description } : {}),
    schema: plain(property),
    ...exampleOfParameter(name, property, isRequired(name), examples?.[name]),
  }));
}

/** Of text from a query the value that it stands for; what is in a path, or must be given, has one in any case. */
function exampleOfParameter(name: string, schema: TSchema, isNeeded: boolean, given?: string): Json {
  if (given !== undefined) return { example: schema.type === "string" ? given : JSON.parse(given) };
  return isNeeded ? { example: exampleOf(plain(schema), name) } : {};
}

function requestBodyOf({ body, example }: Operation): Json {
  if (body === null) return {};
  if (body === "bytes") {
    return { requestBody: { required: true, content: { "application/octet-stream": { schema: {} } } } };
  }
  const content = { schema: plain(body), ...(example?.body ? { example: example.body } : {}) };
  return { requestBody: { required: (body.required ?? []).length > 0, content: { "application/json": content } } };
}

interface Answered {
  description: string;
  headers?: Json;
  content?: Json;
}
type Responses = Record<string, Answered>;

function successesOf(operation: Operation): Responses {
  const responses: Responses = {};
  for (const [outcome, status] of Object.entries(operation.outcomes)) {
    const description = [responses[status]?.description, outcome].filter(Boolean).join(", ");
    // What follows a change of protocols is no body of HTTP's.
    responses[status] =
      status === SWITCHING_PROTOCOLS
        ? { description, ...rateOf(operation) }
        : { description, ...rateOf(operation), content: contentOf(operation) };
  }
  if (sendsFile(operation)) {
    responses[206] = {
      description: "the part that was asked for",
      ...rateOf(operation),
      content: { [BYTES]: { schema: {} } },
    };
    responses[304] = { description: "If-None-Match names what the file is", ...rateOf(operation) };
  }
  return responses;
}

/** What an answer goes on as has a line, or an event, of the output's shape for each thing that it tells. */
function contentOf({ output, bytesOutput = [] }: Operation): Json {
  const schema = extensible(plain(output));
  const isStream = bytesOutput.includes("text/event-stream");
  const isFile = Object.keys(schema).length === 0 && bytesOutput.length > 0;
  const json = isStream || isFile ? {} : { "application/json": { schema, example: exampleOf(schema) } };
  const others = bytesOutput.map((type) => [type, { schema: isStream ? schema : {} }]);
  return { ...json, ...Object.fromEntries(others) };
}

/** Answers may get further fields, which clients ignore. */
function extensible(schema: Json): Json {
  return JSON.parse(JSON.stringify(schema, (key, value) => (key === "additionalProperties" ? undefined : value)));
}

function sendsFile({ bytesOutput }: Operation): boolean {
  return bytesOutput?.includes(BYTES) ?? false;
}

/** The codes of an operation, its own and those that any call may have, by status. */
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

/** Adds them to the successes, of which some have a problem's status. */
function withProblems(responses: Responses, operation: Operation): Responses {
  for (const [status, codes] of codesOf(operation)) {
    const success = responses[status];
    responses[status] = {
      description: [...(success ? [success.description] : []), ...codes].join(", "),
      ...rateOf(operation),
      content: {
        ...success?.content,
        "application/problem+json": {
          schema: { $ref: "#/components/schemas/Problem" },
          examples: Object.fromEntries([...codes].map((code) => [code, { $ref: `#/components/examples/${code}` }])),
        },
      },
    };
  }
  return responses;
}

const RATE_HEADERS = {
  "RateLimit-Limit": "Calls that the key may make at once.",
  "RateLimit-Remaining": "How many of these are left.",
  "RateLimit-Reset": "Seconds until all of them are there again.",
};

/** What an answer to a key tells of its rate. */
function rateOf({ access }: Operation): Json {
  if (access === "open") return {};
  const named = Object.keys(RATE_HEADERS).map((name) => [name, { $ref: `#/components/headers/${name}` }]);
  return { headers: Object.fromEntries(named) };
}

const HEADERS: Json = Object.fromEntries(
  Object.entries(RATE_HEADERS).map(([name, description]) => [name, { description, schema: { type: "integer" } }]),
);

/** Fields of which a bad value has a code of its own. */
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
  // Of a name with an encoding that is none.
  if (Object.keys(operation.params.properties).length > 0) codes.push("route_not_found");
  if (operation.access !== "open")
    codes.push("missing_credentials", "invalid_api_key", "api_key_expired", "rate_limited");
  if (operation.access !== "open" && operation.access !== "key") codes.push("insufficient_scope");
  if (operation.method !== "GET") codes.push("disk_full");
  if (operation.method === "POST") codes.push("idempotency_in_progress", "idempotency_key_reused", "history_gone");
  if (operation.body !== null && operation.body !== "bytes") {
    codes.push("invalid_json", "invalid_body", "body_too_large", "unsupported_media_type", "unknown_field");
  }
  return codes;
}

const PROBLEM: Json = {
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
    details: { type: "object" },
    errors: {
      type: "array",
      items: {
        type: "object",
        required: ["field", "code", "message"],
        properties: {
          field: { type: "string" },
          code: { type: "string" },
          message: { type: "string" },
          min: { type: "number" },
          max: { type: "number" },
        },
      },
    },
    hint: { anyOf: [{ type: "string" }, { type: "null" }] },
  },
};

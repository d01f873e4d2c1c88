/**
 * The document of the interface against the list of operations, and against the copy in the repository, by which a change of
 * the interface is seen in review. With ROOMD_UPDATE=1 the test writes that copy.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Validator } from "@seriousme/openapi-schema-validator";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openapiDocument } from "../../../daemon/domain/service/openapi.ts";
import { errorKind } from "../../../shared/api/errors.ts";
import { REQUEST_HEADERS } from "../../../shared/api/headers.ts";
import { type Json, TestDaemon } from "../../harness/daemon.ts";
import { resolved } from "../../harness/resolved.ts";
import { OPERATIONS } from "../requests.ts";

const COPY = join(import.meta.dirname, "../../../shared/api/openapi.json");

let daemon: TestDaemon;
/** The document as served, and with all references resolved. */
let served: Json;
let document: Json;
beforeAll(async () => {
  daemon = await TestDaemon.start({ env: { ROOMD_LIMITS_FAILED_LOGINS: "1" } });
  served = await daemon.ok("GET", "/v1/openapi.json");
  document = resolved(served);
});
afterAll(() => daemon.stop());

test("the repository's copy is the interface", () => {
  // The version is the build's, and no part of the interface.
  const current = `${JSON.stringify(openapiDocument("v1"), null, 2)}\n`;
  if (process.env.ROOMD_UPDATE === "1") writeFileSync(COPY, current);
  const copy = existsSync(COPY) ? readFileSync(COPY, "utf8") : "";
  expect(copy, "the interface has changed: run the tests once with ROOMD_UPDATE=1 and look at the difference").toBe(
    current,
  );
});

test("the daemon serves that document, with its own version", () => {
  expect(served).toEqual({ ...openapiDocument(served.info.version), openapi: "3.1.0" });
  expect(served.info.version).toMatch(/^\d+\.\d+\.\d+/);
});

test("it is valid OpenAPI 3.1", { timeout: 60_000 }, async () => {
  const validator = new Validator();
  const { valid, errors } = await validator.validate(structuredClone(served));
  expect(errors).toBeUndefined();
  expect({ valid, version: validator.version }).toEqual({ valid: true, version: "3.1" });
  const broken = structuredClone(served);
  broken.paths["/health"].get.responses = { fine: {} };
  expect((await new Validator().validate(broken)).valid).toBe(false);
});

describe("every operation", () => {
  const of = (path: string, method: string) => document.paths[path.replace("*}", "}")]?.[method.toLowerCase()];

  test("belongs to a declared tag", () => {
    const areas = Object.values<Json>(document.paths).flatMap((methods) =>
      Object.values<Json>(methods).flatMap(({ tags }) => tags),
    );
    expect(document.tags.map(({ name }: Json) => name)).toEqual([...new Set(areas)]);
  });

  test("is in it, and no other", () => {
    const shown = Object.values<Json>(document.paths).flatMap((methods) =>
      Object.values<Json>(methods).map(({ operationId }) => operationId),
    );
    expect(shown.sort()).toEqual(OPERATIONS.map(({ name }) => name).sort());
  });

  test.each(OPERATIONS)("$name is described completely", (operation) => {
    const shown = of(operation.path, operation.method);
    const named = (location: string) =>
      shown.parameters.filter((each: Json) => each.in === location).map(({ name }: Json) => name);
    const inPath = [...operation.path.matchAll(/\{(\w+)\*?\}/g)].map((match) => match[1]);
    expect(named("path").sort()).toEqual(inPath.sort());
    expect(named("query").sort()).toEqual(Object.keys(operation.query.properties).sort());
    const headers = shown.parameters.flatMap(({ $ref }: Json) => ($ref ? [$ref.split("/").at(-1)] : []));
    const own = (operation.headers ?? []).map((name) => REQUEST_HEADERS[name].name);
    const ofAll = [...(operation.method === "POST" ? ["Idempotency-Key"] : []), "X-Request-Id", "traceparent"];
    expect(headers).toEqual([...own, ...ofAll]);
    expect(shown.requestBody === undefined).toBe(operation.body === null);
    expect(shown.security).toEqual(operation.access === "open" ? [] : undefined);
    const statuses = Object.keys(shown.responses).map(Number);
    expect(statuses).toEqual(expect.arrayContaining(Object.values(operation.outcomes)));
    const inTemplatePath = "template_id" in operation.params.properties;
    for (const code of operation.errors) {
      const { status, statusInPath } = errorKind(code);
      const expected = (inTemplatePath ? statusInPath : undefined) ?? status;
      expect(shown.responses[expected].description.split(", ")).toContain(code);
    }
  });

  test("has an example of each body that is not a file, valid for its schema", { timeout: 60_000 }, () => {
    for (const { name, path, method } of OPERATIONS) {
      const { requestBody, responses, parameters } = of(path, method);
      for (const { name: parameter, schema, example, required } of parameters) {
        if (required || example !== undefined) expect(whyNot(schema, example), `${name} ${parameter}`).toBeNull();
      }
      const named = Object.entries<Json>({ request: requestBody ?? {}, ...responses });
      for (const [label, { content }] of named) {
        for (const [type, { schema, example }] of Object.entries<Json>(content ?? {})) {
          if (type === "application/problem+json" || Object.keys(schema).length === 0) continue;
          expect(whyNot(schema, example), `${name} ${label} ${type}`).toBeNull();
        }
      }
    }
  });

  test("has examples that consistently describe one room", () => {
    const values = new Map<string, Set<string>>();
    const note = (name: string, value: Json) => {
      if (typeof value === "string") values.set(name, (values.get(name) ?? new Set()).add(value));
    };
    const look = (value: Json): void => {
      if (typeof value !== "object" || value === null) return;
      for (const [name, inner] of Object.entries<Json>(value)) {
        note(name, inner);
        look(inner);
      }
    };
    for (const { path, method } of OPERATIONS) {
      const { requestBody, responses, parameters } = of(path, method);
      for (const { name, example } of parameters) note(name, example);
      for (const { content } of [requestBody ?? {}, ...Object.values<Json>(responses)]) {
        look(content?.["application/json"]?.example);
      }
    }
    for (const name of ["org_id", "room_uid", "sandbox_id", "sandbox", "template_id", "barrier_id", "plan"]) {
      expect([name, ...(values.get(name) ?? [])]).toHaveLength(2);
    }
    // One is made of the other.
    expect([...(values.get("room_id") ?? [])].sort()).toEqual(["build-42", "build-43"]);
    expect([...(values.get("agent_id") ?? [])].sort()).toEqual(["planner", "try-1", "try-2", "worker-1"]);
  });

  test("has headers with examples valid for their schemas", () => {
    const { parameters, headers } = document.components;
    for (const { name, schema, example } of Object.values<Json>(parameters)) {
      expect(whyNot(schema, example), name).toBeNull();
    }
    for (const [name, { schema, example }] of Object.entries<Json>(headers)) {
      expect(whyNot(schema, example), name).toBeNull();
    }
  });

  test("has an example of each problem, by its code", () => {
    for (const { name, path, method } of OPERATIONS) {
      for (const [status, { content }] of Object.entries<Json>(of(path, method).responses)) {
        const examples = content?.["application/problem+json"]?.examples ?? {};
        if (Number(status) >= 400) expect(Object.keys(examples), `${name} ${status}`).not.toEqual([]);
        for (const code of Object.keys(examples)) {
          const { value } = document.components.examples[code];
          expect(whyNot(document.components.schemas.Problem, value), code).toBeNull();
          expect(value.code).toBe(code);
        }
      }
    }
  });

  test("allows no additional fields in its body", { timeout: 60_000 }, () => {
    for (const { name, path, method } of OPERATIONS) {
      const json = of(path, method).requestBody?.content["application/json"];
      if (json) expect(whyNot(json.schema, { ...json.example, "no such field": 1 }), name).not.toBeNull();
    }
  });
});

/** The harness checks in every test that no undocumented header is sent. */
test("each documented response header is sent", async () => {
  const sent = new Set<string>();
  const ask = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const answer = await daemon.api(method, path, body, headers);
    for (const name of answer.headers.keys()) sent.add(name);
    return answer;
  };
  const once = { "idempotency-key": "once" };
  for (const _ of [1, 2]) expect((await ask("POST", "/v1/rooms", { room_id: "told" }, once)).status).toBe(201);
  const file = "/v1/rooms/told/drive/files/notes.txt";
  expect((await ask("PUT", file, "hello\n", { "content-type": "application/octet-stream" })).status).toBe(201);
  expect((await ask("GET", file, undefined, { range: "bytes=0-1" })).status).toBe(206);
  expect((await ask("GET", "/v1/rooms/told/events?follow=false&after=0")).status).toBe(200);
  for (const status of [401, 429]) {
    expect((await ask("GET", "/v1/me", undefined, { authorization: "Bearer key-none" })).status).toBe(status);
  }
  // A terminal, which needs a guest, is attached to in the ring of those.
  const headerNames = Object.keys(document.components.headers).filter((name) => name !== "Sec-WebSocket-Protocol");
  expect(headerNames.filter((name) => !sent.has(name.toLowerCase()))).toEqual([]);
});

describe("its schemas", () => {
  const schemas: { at: string; schema: Json }[] = [];
  const collect = (at: string, value: Json): void => {
    if (typeof value !== "object" || value === null) return;
    if (typeof value.schema === "object") schemas.push({ at, schema: value.schema });
    for (const [key, inner] of Object.entries(value)) if (key !== "schema") collect(`${at}/${key}`, inner);
  };
  beforeAll(() => {
    collect("", served);
    for (const [name, schema] of Object.entries<Json>(served.components.schemas)) schemas.push({ at: name, schema });
  });

  test("are JSON Schema: known keywords, patterns that compile, bounds that can be satisfied", () => {
    expect(schemas.length).toBeGreaterThan(100);
    for (const { at, schema } of schemas) check(at, schema);
  });

  test("are named if they are objects of more than three fields, and are referenced by name", () => {
    const nameless: string[] = [];
    const look = (at: string, schema: Json): void => {
      if (Object.keys(schema.properties ?? {}).length > 3) nameless.push(at);
      lookWithin(at, schema);
    };
    const lookWithin = (at: string, schema: Json): void => {
      for (const [name, inner] of innerOf(schema)) look(`${at}${name}`, inner);
    };
    const isNamed = (at: string) => served.components.schemas[at] !== undefined;
    for (const { at, schema } of schemas) (isNamed(at) ? lookWithin : look)(at, schema);
    expect(nameless).toEqual([]);
    const text = JSON.stringify(served);
    const unused = (name: string) => !text.includes(`"#/components/schemas/${name}"`);
    expect(Object.keys(served.components.schemas).filter(unused)).toEqual([]);
  });

  test("declare nullable values in a form that client generators support", () => {
    const look = (at: string, schema: Json): void => {
      const ofNull = (schema.anyOf ?? []).filter(({ type }: Json) => type === "null");
      // Named or alternative schemas are combined with null by anyOf; all others have null among their types.
      if (ofNull.length > 0) {
        const [first, ...more] = schema.anyOf.filter(({ type }: Json) => type !== "null");
        expect(first.$ref !== undefined || more.length > 0, at).toBe(true);
      }
      if (Array.isArray(schema.type) && schema.enum) expect(schema.enum, at).toContain(null);
      for (const [name, inner] of innerOf(schema)) look(`${at}${name}`, inner);
    };
    for (const { at, schema } of schemas) look(at, schema);
  });

  test("have no dangling references", () => {
    const references = [...JSON.stringify(served).matchAll(/"\$ref":"#([^"]+)"/g)].map((match) => String(match[1]));
    expect(references.length).toBeGreaterThan(0);
    for (const reference of new Set(references)) {
      expect(
        reference
          .split("/")
          .slice(1)
          .reduce((value: Json, key) => value?.[key], served),
        reference,
      ).toBeDefined();
    }
  });
});

/** Nested schemas, each with its path. */
function innerOf({ properties, patternProperties, items, anyOf }: Json): [string, Json][] {
  const fields = Object.entries<Json>({ ...properties, ...patternProperties });
  return [
    ...fields.map(([name, inner]): [string, Json] => [`.${name}`, inner]),
    ...(items ? [["[]", items] as [string, Json]] : []),
    ...(anyOf ?? []).map((inner: Json, index: number): [string, Json] => [`|${index}`, inner]),
  ];
}

const TYPES = ["object", "array", "string", "integer", "number", "boolean", "null"];
const WORDS = new Set(
  [
    ["type", "enum", "const", "anyOf", "description", "examples", "format", "$ref", "contentEncoding", "uniqueItems"],
    ["properties", "required", "additionalProperties", "patternProperties", "maxProperties"],
    ["items", "minItems", "maxItems", "pattern", "minLength", "maxLength", "minimum", "maximum", "multipleOf"],
  ].flat(),
);

/** Throws, with the location, on an invalid JSON Schema. */
function check(at: string, schema: Json): void {
  expect(
    Object.keys(schema).filter((word) => !WORDS.has(word)),
    at,
  ).toEqual([]);
  if (schema.type !== undefined) expect(TYPES, at).toEqual(expect.arrayContaining([schema.type].flat()));
  for (const pattern of [schema.pattern, ...Object.keys(schema.patternProperties ?? {})]) {
    if (pattern !== undefined) expect(() => new RegExp(pattern, "u"), `${at}: ${pattern}`).not.toThrow();
  }
  for (const [low, high] of [
    [schema.minimum, schema.maximum],
    [schema.minLength, schema.maxLength],
    [schema.minItems, schema.maxItems],
  ]) {
    if (low !== undefined && high !== undefined) expect(low, at).toBeLessThanOrEqual(high);
  }
  const properties = Object.entries<Json>(schema.properties ?? {});
  for (const name of schema.required ?? [])
    expect(
      properties.map(([each]) => each),
      at,
    ).toContain(name);
  for (const [name, inner] of innerOf(schema)) check(`${at}${name}`, inner);
}

// That the schemas are schemas is tested above; each is used once.
const ajv = new Ajv2020({
  strictRequired: false,
  strictTypes: false,
  validateSchema: false,
  code: { optimize: false },
});
addFormats.default(ajv);

/** Null when the schema takes the value. */
function whyNot(schema: Json, value: unknown): string | null {
  const check = ajv.compile(schema);
  return check(value) ? null : `${ajv.errorsText(check.errors)}: ${JSON.stringify(value)}`;
}

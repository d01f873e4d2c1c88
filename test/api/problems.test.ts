/** Errors have one format, with a code of the table, in the order of the pipeline's checks; internal details are never sent. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ERRORS, type ErrorCode, type Problem } from "../../shared/api/errors.ts";
import { type Answer, TestDaemon } from "../harness/daemon.ts";
import { bare, bearer, makeKey, overSocket } from "./calls.ts";
import { OPERATIONS } from "./requests.ts";

let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await TestDaemon.start();
  await daemon.room("r");
});
afterAll(() => daemon.stop());

const FIELDS = ["code", "detail", "details", "errors", "hint", "request_id", "retryable", "status", "title", "type"];

/** The form that every problem has; returns it. */
function problemIn({ status, headers, body }: Answer): Problem {
  expect(headers.get("content-type")).toBe("application/problem+json");
  expect(Object.keys(body).sort()).toEqual(FIELDS);
  const problem = body as Problem;
  expect(problem.status).toBe(status);
  expect(headers.get("x-request-id")).toBe(problem.request_id);
  expect(problem.type).toBe(`urn:roomd:problem:${problem.code}`);
  expect(problem.title).toBe(ERRORS[problem.code].title);
  expect(problem.detail).toMatch(/^[A-Z"`a-z_\d][^\n]+[^.\s][.?]$/);
  expect(problem.detail.length).toBeLessThan(500);
  expect(problem.details).toBeTypeOf("object");
  for (const error of problem.errors) {
    expect(error).toMatchObject({ field: expect.any(String), code: expect.any(String), message: expect.any(String) });
  }
  expect(JSON.stringify(body)).not.toMatch(/\bat \w+ \(|\/tmp\/|\/work\/|\.ts\b|bunfs|SQLITE|<html/i);
  return problem;
}

async function refusal(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  return problemIn(await daemon.api(method, path, body, headers));
}

describe("the route", () => {
  test.each([
    ["GET", "/nowhere", 404, "route_not_found"],
    ["GET", "/v1", 404, "route_not_found"],
    ["GET", "/v1/nowhere", 404, "route_not_found"],
    ["POST", "/v1/rooms/r/nothing/here", 404, "route_not_found"],
    ["GET", "/v1/rooms/%FF", 404, "route_not_found"],
    ["GET", "/index.html", 404, "route_not_found"],
  ])("%s %s is %i %s", async (method, path, status, code) => {
    expect(await refusal(method, path, undefined, { accept: "text/html" })).toMatchObject({ status, code });
  });

  test("with an unsupported method is 405 and lists the supported ones", async () => {
    const methods = new Map<string, Set<string>>();
    for (const { method, path, aliases = [] } of OPERATIONS) {
      for (const each of [path, ...aliases]) methods.set(each, (methods.get(each) ?? new Set()).add(method));
    }
    // The same place by another operation's path: a sandbox may be named so.
    methods.delete("/v1/rooms/{room_id}/sandboxes/from-template");
    for (const [path, own] of methods) {
      const at = path.replace("{room_id}", "r").replaceAll(/\{\w+\*?\}/g, "x");
      const allowed = [...own].flatMap((method) => (method === "GET" ? ["GET", "HEAD"] : [method])).sort();
      for (const method of ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"].filter((each) => !own.has(each))) {
        const answer = await daemon.api(method, at);
        expect(problemIn(answer), `${method} ${at}`).toMatchObject({ status: 405, code: "method_not_allowed" });
        expect(answer.headers.get("allow")?.split(", ").sort()).toEqual(allowed);
      }
    }
  });

  test("without valid HTTP is refused, and the next client is served", async () => {
    const nonsense = await overSocket(daemon, "GARBAGE\r\n\r\n");
    expect(nonsense).not.toMatch(/ 200 |<html/i);
    expect((await daemon.api("GET", "/v1/me")).status).toBe(200);
  });

  test.each(["a", "ab", "127.0.0.1:8080", "very.long.name.example.org"])(
    "is found with the Host header %s",
    async (host) => {
      const answer = await overSocket(daemon, `GET /v1/me HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
      expect(answer).toMatch(/^HTTP\/1.1 401 /);
    },
  );

  test.each(["[", "a b", "a/p/label", "user@a", "a?b", "", "xn--", "a:99999", "ü", "a\r\nHost: b", "a,b"])(
    "with the Host header %j is 400, and no page of the HTTP server itself",
    async (host) => {
      const answer = await overSocket(daemon, `GET /v1/me HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
      const [head = "", body = ""] = answer.split("\r\n\r\n");
      expect(head).toMatch(/^HTTP\/1.1 400 /);
      expect(head).toContain("application/problem+json");
      expect(JSON.parse(body)).toMatchObject({ status: 400, detail: expect.stringContaining("Host") });
    },
  );

  test("with parent directories stays below its root, or is not found", async () => {
    for (const path of ["/v1/rooms/../../etc/passwd", "/v1/rooms/r/drive/files/../../../../../etc/passwd"]) {
      const raw = await overSocket(
        daemon,
        `GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${daemon.apiKey}\r\nConnection: close\r\n\r\n`,
      );
      expect(raw).toMatch(/^HTTP\/1.1 (404|422) /);
      expect(raw).not.toContain("root:");
    }
  });
});

describe("X-Request-Id", () => {
  test.each(["mine", "a.b-c_d", "x".repeat(128)])("%s is returned", async (own) => {
    for (const path of ["/health", "/v1/rooms", "/v1/rooms/none", "/nowhere"]) {
      const { headers } = await daemon.api("GET", path, undefined, { "x-request-id": own });
      expect(headers.get("x-request-id")).toBe(own);
    }
  });

  test.each(["", "x".repeat(129), "a b", "ü", "a;b", "a/b", "<b>"])("%j is replaced", async (own) => {
    const { headers } = await daemon.api("GET", "/v1/rooms", undefined, { "x-request-id": encodeURI(own) });
    expect(headers.get("x-request-id")).toMatch(/^req_[0-9A-Z]{26}$/);
  });

  test("is unique per request", async () => {
    const ids = await Promise.all(
      Array.from({ length: 50 }, async () => (await daemon.api("GET", "/v1/me")).headers.get("x-request-id")),
    );
    expect(new Set(ids).size).toBe(50);
  });
});

describe("a body", () => {
  const JSON_TYPE = { "content-type": "application/json" };
  const post = async (body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = JSON_TYPE) =>
    problemIn(await bare(daemon, "POST", "/v1/rooms", { ...bearer(daemon.apiKey), ...headers }, body));

  test.each([
    ["text/plain", "{}"],
    ["application/x-www-form-urlencoded", "room_id=x"],
    ["application/json+x", "{}"],
    ["text/json", "{}"],
    ["multipart/form-data; boundary=x", "--x--"],
    ["application/octet-stream", '{"room_id":"x"}'],
  ])("of type %s is 415", async (type, body) => {
    expect(await post(body, { "content-type": type })).toMatchObject({ status: 415, code: "unsupported_media_type" });
  });

  test("of JSON with a charset, or with capitals, is accepted", async () => {
    for (const type of ["application/json; charset=utf-8", "Application/JSON"]) {
      expect((await post("{}", { "content-type": type })).code).toBe("validation_failed");
    }
  });

  test.each([
    ["truncated JSON", '{"room_id":"x"'],
    ["two values", '{"room_id":"x"}{"room_id":"y"}'],
    ["a trailing comma", '{"room_id":"x",}'],
    ["single quotes", "{'room_id':'x'}"],
    ["a bare word", "undefined"],
    ["only space", "   "],
    ["broken UTF-8", Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d)],
    ["a truncated character", new Uint8Array([...Buffer.from('{"room_id":"'), 0xe2, 0x82, ...Buffer.from('"}')])],
    ["UTF-16", new Uint8Array(Buffer.from('{"room_id":"x"}', "utf16le"))],
    ["NUL bytes", "\0\0\0"],
  ])("with %s is 400 invalid_json", async (_, body) => {
    expect(await post(body)).toMatchObject({ status: 400, code: "invalid_json" });
  });

  test.each(["[]", '[{"room_id":"x"}]', '"room"', "7", "null", "true", "[".repeat(15_000) + "]".repeat(15_000)])(
    "%.20s is 400 invalid_body",
    async (body) => {
      expect(await post(body)).toMatchObject({ status: 400, code: "invalid_body" });
    },
  );

  test("of 15,000 levels is refused by its field, quickly", async () => {
    const deep = `${'{"a":'.repeat(15_000)}1${"}".repeat(15_000)}`;
    const { status, errors } = await post(`{"room_id":"x","labels":${deep}}`);
    expect({ status, fields: errors.map(({ field }) => field) }).toEqual({ status: 422, fields: ["labels.a"] });
    const sandbox = JSON.stringify({ agent_id: "a", guest_cid: 9100, memory_mib: 512, env_json: deep });
    expect((await refusal("POST", "/v1/rooms/r/sandboxes/from-template", sandbox)).status).toBe(422);
  });

  test("of over 20,000 values is 413, even if it is short", async () => {
    const deep = `${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`;
    expect(await post(`{"room_id":"x","labels":${deep}}`)).toMatchObject({
      status: 413,
      code: "body_too_large",
      details: { max_values: 20_000 },
    });
  });

  test("above the limit is 413, with or without Content-Length, and the next request is served", async () => {
    const large = `{"room_id":"x","labels":{"a":"${"x".repeat(1_100_000)}"}}`;
    expect(await post(large)).toMatchObject({ status: 413, code: "body_too_large", details: { max_bytes: 1_048_576 } });
    const head = (more: string) =>
      `POST /v1/rooms HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${daemon.apiKey}\r\nContent-Type: application/json\r\nConnection: close\r\n${more}\r\n\r\n`;
    const chunk = `10000\r\n${"x".repeat(0x10000)}\r\n`;
    const chunked = await overSocket(daemon, head("Transfer-Encoding: chunked"), chunk.repeat(20), "0\r\n\r\n");
    expect(chunked).toMatch(/^HTTP\/1.1 413 /);
    const claimed = await overSocket(daemon, head("Content-Length: 999999999999"));
    expect(claimed).toMatch(/^HTTP\/1.1 413 /);
    expect((await daemon.api("GET", "/v1/me")).status).toBe(200);
  });

  test("with names of JavaScript's prototype is treated like any other", async () => {
    for (const name of ["__proto__", "constructor", "toString", "hasOwnProperty"]) {
      expect(await post(`{"room_id":"x","${name}":{"labels":{}}}`)).toMatchObject({
        status: 422,
        code: "unknown_field",
      });
      expect((await daemon.api("GET", `/v1/rooms?${name}=1&limit=1`)).status).toBe(200);
    }
    expect(await post('{"room_id":"x","labels":{"__proto__":"x"}}')).toMatchObject({
      status: 422,
      errors: [{ field: "labels.__proto__", code: "pattern" }],
    });
    expect((await daemon.ok("GET", "/v1/rooms/r")).labels).toEqual({});
  });
});

describe("fields", () => {
  const create = (body: unknown) => refusal("POST", "/v1/rooms", body);

  test("that are invalid are all reported together, each once, with the expected format", async () => {
    const { code, errors, detail } = await create({
      room_id: "-x",
      ttl_seconds: 0,
      labels: { a: 1, "b c": "x" },
      lables: {},
    });
    expect(code).toBe("validation_failed");
    expect(detail).toMatch(/^5 /);
    expect(errors.map(({ field, code }) => [field, code]).sort()).toEqual([
      ["labels.a", "wrong_type"],
      ["labels.b c", "pattern"],
      ["lables", "unknown_field"],
      ["room_id", "pattern"],
      ["ttl_seconds", "out_of_range"],
    ]);
    expect(errors.find(({ field }) => field === "ttl_seconds")).toMatchObject({ min: 1, max: 31_536_000 });
  });

  test("with an unknown name are reported with the most similar known name, if any", async () => {
    expect(await create({ room_id: "x", labls: {} })).toMatchObject({
      code: "unknown_field",
      detail: expect.stringMatching(/\blabels\b/),
    });
    expect((await create({ room_id: "x", zzz: 1 })).detail).toMatch(/\bzzz\.$/);
  });

  test.each<[unknown, string]>([
    [{}, "required"],
    [{ room_id: null }, "wrong_type"],
    [{ room_id: 7 }, "wrong_type"],
    [{ room_id: ["x"] }, "wrong_type"],
    [{ room_id: "" }, "pattern"],
    [{ room_id: "x".repeat(129) }, "pattern"],
    [{ room_id: "a/b" }, "pattern"],
    [{ room_id: "a\0b" }, "pattern"],
    [{ room_id: "a\n" }, "pattern"],
    [{ room_id: "ä" }, "pattern"],
    [{ room_id: ".." }, "pattern"],
    [{ room_id: "--config=x" }, "pattern"],
  ])("%j has a room_id that breaks the rule %s", async (body, code) => {
    expect(await create(body)).toMatchObject({
      status: 422,
      code: "validation_failed",
      errors: [{ field: "room_id", code }],
    });
  });

  test.each(["1e400", "-1", "1.5", '"60"', "9007199254740993", "31536001", "true", "[60]"])(
    "with ttl_seconds %s are refused",
    async (text) => {
      const { status, errors } = await create(`{"room_id":"x","ttl_seconds":${text}}`);
      expect({ status, fields: errors.map(({ field }) => field) }).toEqual({ status: 422, fields: ["ttl_seconds"] });
    },
  );

  test("in the query are validated like those of the body, and unknown ones are ignored", async () => {
    const { errors } = await refusal("GET", "/v1/rooms?limit=0&state=gone&label=nocolon&cursor=&nonsense=1");
    expect(errors.map(({ field }) => field).sort()).toEqual(["label", "limit", "state"]);
    for (const limit of ["abc", "1.5", "1001", "-1", "1e3", " 1", "0x10"]) {
      expect((await refusal("GET", `/v1/rooms?limit=${limit}`)).errors.map(({ field }) => field)).toEqual(["limit"]);
    }
    expect((await daemon.api("GET", "/v1/rooms?limit=1000&nonsense=1&limit=2")).status).toBe(200);
    expect(await refusal("GET", "/v1/rooms?label=%FF%FE")).toMatchObject({ status: 400, code: "invalid_query" });
  });

  test("of any length and number get a bounded answer", async () => {
    const { errors } = await create({ room_id: "x", ["x".repeat(100_000)]: 1 });
    expect(errors).toMatchObject([{ field: `${"x".repeat(200)}…` }]);
    const many = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`field-${index}`, 1]));
    expect((await create({ room_id: "x", ...many })).errors.length).toBeLessThanOrEqual(50);
  });
});

describe("the order of checks", () => {
  let reader: string;
  beforeAll(async () => {
    reader = (await makeKey(daemon, { scopes: ["rooms:read", "drive:read"] })).key;
  });

  /** Each call breaks one rule fewer than the previous one; the response is the first broken rule's error. */
  const broken = { "content-type": "text/plain" };
  const right = { "content-type": "application/json" };
  const none = "/v1/rooms/none/drive/move";
  const there = "/v1/rooms/r/drive/move";
  const bad = '{"from":"/nothing","to":"/t","overwrite":1}';
  const steps: [ErrorCode, string, string, Record<string, string>, () => string | null][] = [
    ["missing_credentials", none, "{", broken, () => null],
    ["invalid_api_key", none, "{", broken, () => "key-nonsense"],
    ["insufficient_scope", none, "{", broken, () => reader],
    ["room_not_found", none, "{", broken, () => daemon.apiKey],
    ["unsupported_media_type", there, "{", broken, () => daemon.apiKey],
    ["invalid_json", there, "{", right, () => daemon.apiKey],
    ["invalid_body", there, "[]", right, () => daemon.apiKey],
    ["validation_failed", there, bad, right, () => daemon.apiKey],
    ["path_not_found", there, '{"from":"/nothing","to":"/t"}', right, () => daemon.apiKey],
  ];
  test.each(steps)("%s precedes all later checks", async (code, path, body, headers, key) => {
    const as = key();
    const answer = await bare(daemon, "POST", path, { ...headers, ...(as === null ? {} : bearer(as)) }, body);
    expect(problemIn(answer).code).toBe(code);
  });

  test("404 comes before 413, and 422 before 409", async () => {
    const large = JSON.stringify({ path: "/x", content: "x".repeat(2_000_000) });
    expect((await refusal("POST", "/v1/rooms/none/drive/mkdir", large)).code).toBe("room_not_found");
    expect((await refusal("POST", "/v1/rooms/r/drive/mkdir", large)).code).toBe("body_too_large");
    expect((await refusal("POST", "/v1/rooms", { room_id: "r", ttl_seconds: 0 })).code).toBe("validation_failed");
    expect((await refusal("POST", "/v1/rooms", { room_id: "r" })).code).toBe("room_id_in_use");
  });

  test("an unknown route is hidden without a key, like everything under /v1", async () => {
    for (const path of ["/v1/nowhere", "/v1/rooms/r/x"]) {
      expect(problemIn(await bare(daemon, "GET", path)).code).toBe("missing_credentials");
    }
    expect(problemIn(await bare(daemon, "PATCH", "/v1/rooms")).code).toBe("missing_credentials");
  });
});

test("these requests caused no error log of the daemon", async () => {
  expect(daemon.log.split("\n").filter((line) => line.includes('"level":"error"'))).toEqual([]);
});

/** Validation of fields against the schemas of real operations: accepted values, invalid fields, and their codes. */
import { Type } from "@sinclair/typebox";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { makeInputCheck, nearestOf, problemCodeOf } from "../../../../daemon/edge/pipeline/input.ts";
import { DEFAULT_MAX_BODY_BYTES, fields, NONE } from "../../../../shared/api/contract.ts";
import { operations } from "../../../../shared/api/operations.ts";

const create = makeInputCheck(operations.sandbox_create);
const GOOD = { agent_id: "worker-1", guest_cid: 9100, memory_mib: 512 };
const checkBody = (body: Record<string, unknown>) => create.check({ room_id: "r" }, {}, body);
const namesOf = (body: Record<string, unknown>) => checkBody(body).bad.map(({ field, code }) => `${field}: ${code}`);
const codeOf = (body: Record<string, unknown>) => problemCodeOf(checkBody(body).bad);

describe("valid input", () => {
  test("is passed on as one object of path, query and body", () => {
    const { input, bad } = create.check({ room_id: "r" }, { wait: "none", wait_timeout_ms: "5", other: "x" }, GOOD);
    expect(bad).toEqual([]);
    expect(input).toEqual({ room_id: "r", wait: "none", wait_timeout_ms: 5, ...GOOD });
  });

  test("in the query becomes numbers and booleans, only if the schema requires them", () => {
    const check = makeInputCheck({
      params: NONE,
      query: fields({
        n: Type.Optional(Type.Integer()),
        b: Type.Optional(Type.Boolean()),
        s: Type.Optional(Type.String()),
      }),
      body: null,
    });
    const read = (query: Record<string, string>) => check.check({}, query, {}).input;
    expect(read({ n: "-7", b: "1", s: "7" })).toEqual({ n: -7, b: true, s: "7" });
    expect(read({ b: "false" })).toEqual({ b: false });
    for (const n of ["", "1.0", "1e3", " 1", "0x1", "--1", "9".repeat(16), "true", "NaN"]) {
      expect({ n, bad: check.check({}, { n }, {}).bad.map(({ field }) => field) }).toEqual({ n, bad: ["n"] });
    }
    for (const b of ["", "yes", "TRUE", "2"]) expect(check.check({}, { b }, {}).bad).toHaveLength(1);
  });

  test("in x_json is parsed as x", () => {
    const { input, bad } = checkBody({ ...GOOD, env_json: '{"A":"b"}', egress_allowlist_json: '["example.org"]' });
    expect(bad).toEqual([]);
    expect(input).toMatchObject({ env: { A: "b" }, egress_allowlist: ["example.org"] });
    expect(input).not.toHaveProperty("env_json");
  });
});

describe("invalid input", () => {
  test("is reported completely, each field once", () => {
    expect(
      namesOf({ guest_cid: "9100", memory_mib: 1, env: { A: 1, B: "ok", C: null }, labels: [], extra: 1 }),
    ).toEqual([
      "agent_id: required",
      "extra: unknown_field",
      "guest_cid: wrong_type",
      "memory_mib: out_of_range",
      "env.A: wrong_type",
      "env.C: wrong_type",
      "labels: wrong_type",
    ]);
  });

  test("is omitted from the input of the rules, which get the rest", () => {
    const { input } = checkBody({ ...GOOD, guest_cid: 1, env: { A: 1 }, labels: { a: "b" } });
    expect(input).toEqual({ room_id: "r", agent_id: "worker-1", memory_mib: 512, labels: { a: "b" } });
  });

  test("has its path in lists and objects, for any names", () => {
    expect(namesOf({ ...GOOD, egress_allowlist: ["a", 1, null] })).toEqual([
      "egress_allowlist[1]: wrong_type",
      "egress_allowlist[2]: wrong_type",
    ]);
    expect(namesOf({ ...GOOD, env: { "a/b~c.d": 1, "7": 1 } }).sort()).toEqual([
      "env.a/b~c.d: wrong_type",
      "env[7]: wrong_type",
    ]);
    expect(namesOf({ ...GOOD, labels: { "a b": "x" } })).toEqual(["labels.a b: pattern"]);
  });

  test("in x_json above the body limit outside of texts is too large, and not reported as invalid JSON", () => {
    const many = `[${"0,".repeat(DEFAULT_MAX_BODY_BYTES / 2)}0]`;
    expect(() => checkBody({ ...GOOD, egress_allowlist_json: many })).toThrow(
      expect.objectContaining({ code: "body_too_large" }),
    );
  });

  test("in x_json is reported under the name in the request", () => {
    expect(namesOf({ ...GOOD, env_json: '{"A":1}' })).toEqual(["env_json.A: wrong_type"]);
    expect(namesOf({ ...GOOD, env_json: "{" })).toEqual(["env_json: invalid_env_json"]);
    expect(namesOf({ ...GOOD, env_json: 7 })).toEqual(["env_json: wrong_type"]);
    expect(namesOf({ ...GOOD, env: {}, env_json: "{" })).toEqual(["env_json: conflicting_fields"]);
    expect(namesOf({ ...GOOD, env: { A: 1 }, env_json: "{}" }).sort()).toEqual([
      "env.A: wrong_type",
      "env_json: conflicting_fields",
    ]);
  });

  test("has the code of its field if there is no other error", () => {
    expect(codeOf({ ...GOOD, guest_cid: 9099 })).toBe("guest_cid_out_of_range");
    expect(codeOf({ ...GOOD, memory_mib: 0 })).toBe("memory_mib_out_of_range");
    expect(codeOf({ ...GOOD, guest_cid: 9099, memory_mib: 0 })).toBe("validation_failed");
    expect(codeOf({ ...GOOD, env_json: "[]" })).toBe("invalid_env_json");
    expect(codeOf({ ...GOOD, a: 1, b: 2 })).toBe("unknown_field");
    expect(codeOf({ ...GOOD, a: 1, guest_cid: 1 })).toBe("validation_failed");
    expect(codeOf({ ...GOOD, guest_cid: "9100" })).toBe("validation_failed");
  });

  test("in a list of calls leaves each item's valid fields, and outside of it nothing of the list", () => {
    const item = fields({
      a: Type.Optional(Type.Integer()),
      names: Type.Optional(Type.Array(Type.String(), { uniqueItems: true })),
    });
    const body = fields({ list: Type.Array(item, { maxItems: 4 }), other: Type.Optional(Type.Integer()) });
    const check = makeInputCheck({ params: NONE, query: NONE, body, many: "list" });
    const list = [{ a: 1 }, { a: "1", b: 2, names: ["x"] }, 7, { a: 2, names: ["x", "x"] }];
    const { input, bad } = check.check({}, {}, { list, other: 1 });
    expect(input).toEqual({ list: [{ a: 1 }, { names: ["x"] }, {}, { a: 2 }], other: 1 });
    expect(bad.map(({ field, code }) => `${field}: ${code}`)).toEqual([
      "list[1].b: unknown_field",
      "list[1].a: wrong_type",
      "list[2]: wrong_type",
      "list[3].names: repeated",
    ]);
    expect(check.check({}, {}, { list: [...list, {}] }).input).toEqual({});
    const plain = makeInputCheck({ params: NONE, query: NONE, body }).check({}, {}, { list, other: 1 });
    expect(plain.input).toEqual({ other: 1 });
  });

  test("is limited to fifty reported fields", () => {
    const many = Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`x${index}`, 1]));
    expect(checkBody({ ...GOOD, ...many }).bad).toHaveLength(50);
  });
});

describe("a command", () => {
  const exec = makeInputCheck(operations.sandbox_exec);
  const codeOfExec = (body: Record<string, unknown>) => {
    const { bad } = exec.check({ room_id: "r", sandbox: "a" }, {}, body);
    return bad.length === 0 ? null : problemCodeOf(bad);
  };

  test.each([
    [{ argv: ["true"], timeout_ms: 1 }, null],
    [{ argv: ["true"], timeout_ms: 0 }, null],
    [{ argv: ["true"], timeout_ms: 604_800_000 }, null],
    [{ argv: ["true"], timeout_ms: -1 }, "timeout_out_of_range"],
    [{ argv: ["true"], timeout_ms: 604_800_001 }, "timeout_out_of_range"],
    [{ argv: ["true"], timeout_ms: "5s" }, "validation_failed"],
    [{ argv: [] }, "invalid_command"],
    [{ argv: Array.from({ length: 1025 }, () => "x") }, "invalid_command"],
    [{ argv: "true" }, "validation_failed"],
    [{ command: "" }, "invalid_command"],
    [{ argv: ["true"], env_json: "[" }, "invalid_env_json"],
    [{ argv: ["true"], max_output_bytes: 8 * 1024 * 1024 + 1 }, "validation_failed"],
    [{ argv: ["true"], user: "a b" }, "validation_failed"],
    [{ argv: ["true"], comand: "true" }, "unknown_field"],
  ])("%.60j is %s", (body, code) => {
    expect(codeOfExec(body)).toBe(code);
  });
});

test("names of JavaScript's own properties are ordinary names, in path, query and body", () => {
  for (const name of ["__proto__", "constructor", "toString", "valueOf", "hasOwnProperty", "__defineGetter__"]) {
    const own = JSON.parse(`{"${name}":"x"}`) as Record<string, string>;
    expect(create.check({ room_id: "r" }, own, GOOD)).toEqual({ input: { room_id: "r", ...GOOD }, bad: [] });
    expect(checkBody({ ...GOOD, ...own }).bad).toMatchObject([{ field: name, code: "unknown_field" }]);
    const { input, bad } = checkBody({ ...GOOD, env: own });
    expect(bad).toEqual([]);
    expect(Object.keys(input.env as object)).toEqual([name]);
  }
  expect(({} as Record<string, unknown>).x).toBeUndefined();
});

test("any JSON gives a result, and accepted input has the declared shape", () => {
  const names = ["agent_id", "guest_cid", "memory_mib", "env", "env_json", "egress_allowlist", "labels", "other"];
  const body = fc.dictionary(
    fc.constantFrom(...names),
    fc.oneof(fc.jsonValue(), fc.constantFrom(9100, 512, "worker", "{}", "[]")),
  );
  fc.assert(
    fc.property(body, (value) => {
      const { input, bad } = checkBody(value as Record<string, unknown>);
      if (bad.length > 0) return;
      expect(input.agent_id).toBeTypeOf("string");
      expect(input.guest_cid ?? 9100).toBeGreaterThanOrEqual(9100);
      expect(Object.values((input.env ?? {}) as object).every((each) => typeof each === "string")).toBe(true);
    }),
    { numRuns: 2000 },
  );
});

describe("the nearest name", () => {
  const known = ["room_id", "labels", "ttl_seconds", "to"];
  test.each([
    ["roomid", "room_id"],
    ["room-id", "room_id"],
    ["ROOM_ID", null],
    ["lables", "labels"],
    ["label", "labels"],
    ["ttl_second", "ttl_seconds"],
    ["ttlSeconds", "ttl_seconds"],
    ["nonsense", null],
    ["t", null],
    ["x", null],
    ["", null],
  ])("to %j is %j", (name, nearest) => {
    expect(nearestOf(name, known)).toBe(nearest);
  });

  test("is found quickly, also for a name of a megabyte", () => {
    expect(nearestOf("room_id".repeat(150_000), known)).toBeNull();
  });
});

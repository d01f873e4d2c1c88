/** The server name in a TLS client's first message, whole, cut, lying, and of garbage. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readServerName } from "../../../../daemon/domain/egress/client-hello.ts";
import { helloOf, inRecords, messageOf, serverNameExtension } from "./hello.ts";

const GREASE = { type: 0x4a4a, content: Buffer.alloc(1) };
const KEYS = { type: 51, content: Buffer.alloc(1300, 9) };

test.each([
  ["its name", helloOf({ names: "Example.org" }), { is: "name", name: "Example.org" }],
  [
    "its name among others",
    helloOf({ names: "a.b", before: [GREASE, KEYS], behind: [KEYS] }),
    { is: "name", name: "a.b" },
  ],
  ["no name", helloOf({ names: null, before: [GREASE, KEYS] }), { is: "absent" }],
  ["no extensions", Buffer.concat([messageOf(Buffer.alloc(0)).subarray(0, -2)]), { is: "more", bytes: 0 }],
  ["an empty name", helloOf({ names: "" }), { is: "invalid" }],
  ["two names", helloOf({ names: ["a.b", "c.d"] }), { is: "invalid" }],
  ["a name of another type", helloOf({ names: "a.b", nameType: 1 }), { is: "invalid" }],
  [
    "two lists of names",
    messageOf(Buffer.concat([serverNameExtension(["a.b"]), serverNameExtension(["c.d"])])),
    { is: "invalid" },
  ],
  ["an extension that goes beyond the end", messageOf(Buffer.from([0, 0, 0, 200])), { is: "invalid" }],
  ["half an extension", messageOf(Buffer.from([0, 0, 0])), { is: "invalid" }],
] as const)("a hello with %s", (_, message, found) => {
  const read = readServerName(inRecords(message));
  expect(found.is === "more" ? { is: read.is } : read).toEqual(found.is === "more" ? { is: "more" } : found);
});

test("a hello without any extensions has no name", () => {
  const message = Buffer.from(messageOf(Buffer.alloc(0)).subarray(0, -2));
  message.writeUIntBE(message.byteLength - 4, 1, 3);
  expect(readServerName(inRecords(message))).toEqual({ is: "absent" });
});

test.each([
  ["another handshake", Buffer.concat([Buffer.from([2]), helloOf({ names: "a.b" }).subarray(1)])],
  ["a message with a length above the limit", Buffer.from([1, 1, 0, 0, 3, 3])],
] as const)("%s is not a hello", (_, message) => expect(readServerName(inRecords(message))).toEqual({ is: "invalid" }));

test.each([
  ["an empty record", [22, 3, 1, 0, 0]],
  ["a record that is longer than any", [22, 3, 1, 0xff, 0xff]],
  ["another version", [22, 2, 1, 0, 5, 1]],
  ["another record", [23, 3, 1, 0, 5, 1]],
] as const)("%s is not a hello record", (_, bytes) =>
  expect(readServerName(Buffer.from(bytes))).toEqual({ is: "invalid" }),
);

test("another record type within the hello invalidates it", () => {
  const first = inRecords(helloOf({ names: "a.b" })).subarray(0, 30);
  first.writeUInt16BE(25, 3);
  expect(readServerName(Buffer.concat([first, Buffer.from([23, 3, 3, 0, 1, 0])]))).toEqual({ is: "invalid" });
});

test("more records than any client uses invalidate it", () => {
  expect(readServerName(inRecords(helloOf({ names: "a.b" }), [1]))).toEqual({ is: "invalid" });
});

describe("in pieces", () => {
  const names = fc.stringMatching(/^[a-z0-9-]{1,20}(\.[a-z0-9-]{1,20}){0,3}$/);
  const others = fc.array(
    fc.record({ type: fc.integer({ min: 1, max: 0xffff }), content: fc.uint8Array({ maxLength: 600 }) }),
    {
      maxLength: 4,
    },
  );

  test("the result is the same for records of any size, and is not given before the end", () => {
    const sizes = fc.array(fc.integer({ min: 200, max: 4000 }), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(names, others, others, sizes, fc.boolean(), (name, before, behind, each, isNamed) => {
        const asBuffers = (list: typeof before) =>
          list.map(({ type, content }) => ({ type, content: Buffer.from(content) }));
        const message = helloOf({ names: isNamed ? name : null, before: asBuffers(before), behind: asBuffers(behind) });
        const bytes = inRecords(message, each);
        const expected = isNamed ? { is: "name", name } : { is: "absent" };
        expect(readServerName(bytes)).toEqual(expected);
        expect(readServerName(Buffer.concat([bytes, Buffer.from("early data")]))).toEqual(expected);
        let cut = 0;
        for (let looks = 0; ; looks++) {
          const found = readServerName(bytes.subarray(0, cut));
          if (found.is !== "more") break;
          expect(found.bytes).toBeGreaterThan(cut);
          expect(looks).toBeLessThan(40);
          cut = found.bytes;
        }
        expect(cut).toBe(bytes.byteLength);
      }),
      { numRuns: 50 },
    );
  });

  test("garbage and changed bytes are parsed or rejected, and never throw", () => {
    const whole = inRecords(helloOf({ names: "example.org", before: [GREASE], behind: [KEYS] }));
    const changes = fc.array(fc.tuple(fc.nat(whole.byteLength - 1), fc.nat(255)), { minLength: 1, maxLength: 4 });
    const kinds = ["name", "absent", "more", "invalid"];
    fc.assert(
      fc.property(changes, fc.uint8Array({ maxLength: 200 }), (changed, garbage) => {
        const bytes = Buffer.from(whole);
        for (const [at, byte] of changed) bytes[at] = byte;
        return [bytes, Buffer.from(garbage), Buffer.concat([Buffer.from([22, 3, 1]), garbage])].every((each) =>
          kinds.includes(readServerName(each).is),
        );
      }),
      { numRuns: 500 },
    );
  });
});

/** Standard input that comes with a call, and the longest turn of the event loop while it is read. */
import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { type GivenStdin, type Stdin, Stdins } from "../../../../../../daemon/domain/sandboxes/executions/run/stdin.ts";
import { MAX_STDIN_BYTES } from "../../../../../../shared/api/executions.ts";
import type { OrgId } from "../../../../../../shared/ids.ts";
import { boundOf, longestTurn } from "../../../../../harness/event-loop/longest-turn.ts";

/** Checked, decoded and hashed twice in one turn, 8 MiB take 16 to 25. */
const MAX_MS = 10;
const ORG = "org_1" as OrgId;

const inBase64 = (text: string): GivenStdin => ({ field: "data_b64", text, encoding: "base64" });
const bytesOf = (length: number) => Buffer.alloc(length, "ab\0\xff");

async function read(given: GivenStdin): Promise<Stdin | null> {
  const [stdins, input] = [new Stdins("execution_stdin"), {}];
  expect(await stdins.rules(input, given, ORG)).toEqual([]);
  const stdin = await stdins.of(input, given, ORG);
  // It is not decoded again.
  expect(await stdins.of(input, given, ORG)).toBe(stdin);
  return stdin;
}

test.each<[string, GivenStdin, Buffer]>([
  ["nothing", inBase64(""), Buffer.alloc(0)],
  ["text", { field: "stdin", text: "äöü\0", encoding: "utf8" }, Buffer.from("äöü\0")],
  ["as much as there may be", inBase64(bytesOf(MAX_STDIN_BYTES).toString("base64")), bytesOf(MAX_STDIN_BYTES)],
])("%s is read unchanged, with its digest", async (_, given, bytes) => {
  const stdin = await read(given);
  expect(Buffer.compare(bytes, stdin?.bytes ?? Buffer.from("none"))).toBe(0);
  expect(stdin?.sha256).toBe(createHash("sha256").update(bytes).digest("hex"));
});

test.each<[string, GivenStdin, string]>([
  ["invalid base64", inBase64("a-b_"), "invalid_base64"],
  ["base64 without padding", inBase64("YQ"), "invalid_base64"],
  ["a byte more than there may be", inBase64(bytesOf(MAX_STDIN_BYTES + 1).toString("base64")), "length"],
  ["long text", { field: "stdin", text: "x".repeat(MAX_STDIN_BYTES + 1), encoding: "utf8" }, "length"],
])("%s is rejected", async (_, given, code) => {
  expect(await new Stdins("sandbox_exec").rules({}, given, ORG)).toMatchObject([{ field: given.field, code }]);
});

test("a call without it has none", async () => {
  expect(await new Stdins("sandbox_exec").of({}, null, ORG)).toBeNull();
});

test("8 MiB in base64 are decoded in short turns", async () => {
  const given = inBase64(bytesOf(MAX_STDIN_BYTES).toString("base64"));
  // Compiled before it is measured.
  await read(given);
  const longest = await longestTurn(() => read(given));
  console.log(`longest turn: ${longest.toFixed(1)} ms`);
  expect(longest).toBeLessThan(boundOf(MAX_MS));
});

/** The boot IDs that are made for sandboxes. */
import { expect, test } from "vitest";
import { uuidOf } from "../../../guest-agent/boot-id.ts";

test("are random UUIDs of version 4", () => {
  expect(uuidOf("0123456789abcdef0123456789abcdef")).toBe("01234567-89ab-4def-8123-456789abcdef");
  expect(uuidOf("f".repeat(32))).toBe("ffffffff-ffff-4fff-bfff-ffffffffffff");
  expect(uuidOf("0".repeat(32))).toBe("00000000-0000-4000-8000-000000000000");
});

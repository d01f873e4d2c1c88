/** The packages that the daemon serves to clients: two builds of the same sources have the same bytes. */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { cliTarball } from "../../../packaging/client-packages/cli.ts";
import { sdkTarball } from "../../../packaging/client-packages/sdk.ts";
import { wheel } from "../../../packaging/client-packages/wheel.ts";

const ROOT = resolve(import.meta.dirname, "../../..");
const ABOUT = { version: "1.2.3", commit: "0123abcd" };

/** Within the repository, so that the compiler finds the types of the SDK's peers. */
let scratch: string;
beforeAll(() => {
  mkdirSync(join(ROOT, "dist"), { recursive: true });
  scratch = mkdtempSync(join(ROOT, "dist/.test-packages-"));
});
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const BUILDS: Record<string, (place: string) => Uint8Array | Promise<Uint8Array>> = {
  "the command line": (place) => cliTarball(ROOT, place, ABOUT),
  "the TypeScript SDK": (place) => sdkTarball(ROOT, place),
  "the Python SDK": () => wheel(ROOT, ABOUT.version).bytes,
};

test.for(Object.entries(BUILDS))("%s", { timeout: 300_000 }, async ([, build]) => {
  const one = Buffer.from(await build(join(scratch, "one")));
  const two = Buffer.from(await build(join(scratch, "a-second-place")));
  expect(one.byteLength).toBeGreaterThan(1000);
  expect(Buffer.compare(one, two)).toBe(0);
});

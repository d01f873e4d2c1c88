/** Copies of a sandbox's directory to this machine: names and links that lead out of it are not followed. */
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { SandboxFileEntry } from "../../../sdk/typescript/src/generated/schemas.ts";
import { downloadDirectory } from "../../../sdk/typescript/src/local-tree.ts";

let top: string;
beforeEach(() => {
  top = mkdtempSync(join(tmpdir(), "roomd-download-"));
  mkdirSync(join(top, "back"));
  mkdirSync(join(top, "outside"));
  writeFileSync(join(top, "secret"), "secret");
});
afterEach(() => rmSync(top, { recursive: true, force: true }));

/** Copies a listing of files that all contain `new`. */
function download(...listed: Partial<SandboxFileEntry>[]): Promise<void> {
  const part = new TextEncoder().encode("new");
  const files = {
    list: async function* () {
      yield* listed.map((entry) => ({ mode: "0644", ...entry }) as SandboxFileEntry);
    },
    open: async () => ({
      stream: (async function* () {
        yield part;
      })(),
      close: () => {},
    }),
    write: async () => {},
    mkdir: async () => {},
  };
  return downloadDirectory(files, "/work", join(top, "back"), {});
}

test("a directory is downloaded with its links", async () => {
  await download(
    { path: "/work/d", type: "directory" },
    { path: "/work/d/f", type: "file" },
    { path: "/work/l", type: "symlink", target: "d/f" },
  );
  expect([readFileSync(join(top, "back/d/f"), "utf8"), readlinkSync(join(top, "back/l"))]).toEqual(["new", "d/f"]);
});

test("a name that leads out is rejected", async () => {
  await expect(download({ path: "/work/../../evil", type: "directory" })).rejects.toThrow("leads out");
  expect(readdirSync(top).sort()).toEqual(["back", "outside", "secret"]);
});

test("writes nothing through a link created by an earlier copy", async () => {
  symlinkSync("../outside", join(top, "back/d"));
  symlinkSync("../secret", join(top, "back/f"));
  await download({ path: "/work/f", type: "file" });
  expect([readFileSync(join(top, "back/f"), "utf8"), readFileSync(join(top, "secret"), "utf8")]).toEqual([
    "new",
    "secret",
  ]);
  const throughLink = `${join(top, "back/d")} `;
  const directory = { path: "/work/d", type: "directory" } as const;
  await expect(download(directory, { path: "/work/d/x", type: "file" })).rejects.toThrow(throughLink);
  await expect(download({ path: "/work/d/x", type: "file" })).rejects.toThrow(throughLink);
  await expect(download({ path: "/work/d/x", type: "symlink", target: "y" })).rejects.toThrow(throughLink);
  expect(readdirSync(join(top, "outside"))).toEqual([]);
});

/** Parts of an image that the host reads, and the images that it refuses. */
import { mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import {
  digestOf,
  MAX_JSON_BYTES,
  platformManifest,
  readIndexOrManifest,
  readLayout,
} from "../../../../../daemon/domain/templates/image/layout.ts";
import { type ImageConfig, writeImage } from "../../../../harness/images/oci-image.ts";

const MOST = 1024 * 1024;
const LAYER = [{ name: "a", content: "a" }];

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "roomd-image-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

const read = async () => await readLayout(directory, MOST);
const refused = async () => (await read().catch((error: unknown) => error)) as { code?: string; message?: string };
const config = async (imageConfig: ImageConfig) => {
  await writeImage(directory, [LAYER], imageConfig);
};

test("command defaults are those of the image's configuration", async () => {
  await config({
    ...{ Env: ["A=1", "B=x=y", "C"], WorkingDir: "/srv", User: "app:staff" },
    ...{ Entrypoint: ["/app"], Cmd: ["--serve"] },
  });
  const facts = await read();
  expect(facts.defaults).toEqual({
    ...{ env: { A: "1", B: "x=y", C: "" }, cwd: "/srv", user: "app:staff" },
    start: ["/app", "--serve"],
  });
  const [only] = JSON.parse(readFileSync(join(directory, "index.json"), "utf8")).manifests;
  expect(facts.manifest_digest).toBe(only.digest);
});

test("an image with an empty configuration has no defaults", async () => {
  await config({ User: "", WorkingDir: "" });
  expect((await read()).defaults).toEqual({ env: {}, cwd: null, user: null, start: null });
});

test.each([
  ["an environment without a name", { Env: ["=x"] }, /environment/],
  ["a working directory that is not absolute", { WorkingDir: "srv" }, /WorkingDir/],
  ["an entry point with NUL", { Cmd: ["a\0b"] }, /entry point/],
  ["a user with a line feed", { User: "a\nroot" }, /User/],
])("%s is rejected", async (_name, said, field) => {
  await config(said);
  expect(await refused()).toMatchObject({ code: "image_invalid", message: expect.stringMatching(field) });
});

test("more digests than layers, another processor, and a layer of another size are rejected", async () => {
  const id = digestOf("x");
  await writeImage(directory, [LAYER], {}, { diffIds: [id, id] });
  expect((await refused()).message).toMatch(/ 2 layers, .* 1\.$/);
  await writeImage(directory, [LAYER], {}, { platform: { os: "linux", architecture: "arm64" } });
  expect((await refused()).message).toContain("linux/arm64");
  await writeImage(directory, [LAYER]);
  const { manifests } = JSON.parse(readFileSync(join(directory, "index.json"), "utf8"));
  const blob = (digest: string) => join(directory, "blobs", "sha256", digest.slice(7));
  const { layers } = JSON.parse(readFileSync(blob(manifests[0].digest), "utf8"));
  truncateSync(blob(layers[0].digest), 3);
  expect(await refused()).toMatchObject({ code: "image_invalid" });
});

test("an oversized image is rejected before it is read", async () => {
  await writeImage(directory, [LAYER]);
  const error = await readLayout(directory, 10).catch((error: unknown) => error);
  expect(error).toMatchObject({ code: "image_too_large" });
  writeFileSync(join(directory, "index.json"), "");
  truncateSync(join(directory, "index.json"), MAX_JSON_BYTES + 1);
  expect(await refused()).toMatchObject({ code: "image_invalid" });
});

test.each(["", "{", "[]", "{}", '{"manifests":[{"digest":"../../etc/passwd","size":1}]}'])(
  "%s is neither index nor manifest",
  (text) => {
    expect(() => readIndexOrManifest(text)).toThrow(expect.objectContaining({ code: "image_invalid" }));
  },
);

test("of several platforms the host's is chosen", () => {
  const of = (os: string, architecture: string, digest: string) => ({
    digest,
    size: 1,
    platform: { os, architecture },
  });
  const [ours, other] = [digestOf("ours"), digestOf("other")];
  const manifests = [of("linux", "arm64", other), of("linux", "amd64", ours)];
  expect(platformManifest({ manifests })).toBe(ours);
  expect(() => platformManifest({ manifests: manifests.slice(0, 1) })).toThrow(
    expect.objectContaining({ code: "image_not_found" }),
  );
});

/** The manifest with which a guest unpacks layers that are packed by zstd, and images that need none. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { blobFile, digestOf, readFiles, readLayout } from "../../../../../daemon/domain/templates/image/layout.ts";
import { writePlainManifest } from "../../../../../daemon/domain/templates/image/zstd.ts";
import { type Layer, writeImage } from "../../../../harness/images/oci-image.ts";

const MOST = 1024 * 1024;
const FIRST = [{ name: "a", content: "a" }];
const SECOND = [{ name: "b", content: "b" }];
const byZstd = (entries: typeof FIRST): Layer => ({ entries, packed: "zstd" });

let directory: string;
let layout: string;
let plain: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "roomd-image-"));
  layout = join(directory, "layout");
  plain = join(directory, "plain");
});
afterEach(() => rmSync(directory, { recursive: true }));

const json = (path: string) => JSON.parse(readFileSync(path, "utf8"));
const hexOf = (digest = "") => digest.replace("sha256:", "");

test("layers packed by zstd are named by their unpacked digest, and the fetched files are unchanged", async () => {
  await writeImage(layout, [FIRST, byZstd(SECOND), byZstd(SECOND)]);
  const before = await readLayout(layout, MOST);
  const files = await readFiles(layout);
  await writePlainManifest(files, plain);
  const [named, ...more] = json(join(plain, "index.json")).manifests;
  expect(more).toEqual([]);
  expect(named).toMatchObject({ ...files.named, digest: expect.anything(), size: expect.any(Number) });
  const text = readFileSync(join(plain, blobFile(named.digest)), "utf8");
  expect([digestOf(text), text.length]).toEqual([named.digest, named.size]);
  const [gzip, zstd] = files.image.layers;
  const [, inside = ""] = files.about.rootfs.diff_ids;
  const archive = { mediaType: "application/vnd.oci.image.layer.v1.tar", digest: inside, size: -1 };
  expect(JSON.parse(text)).toEqual({ ...files.image, layers: [gzip, archive, archive] });
  const line = `${hexOf(zstd?.digest)} ${hexOf(inside)}\n`;
  expect(readFileSync(join(plain, "layers"), "utf8")).toBe(line + line);
  expect(await readLayout(layout, MOST)).toEqual(before);
});

test("a layer stored under its unpacked digest is used", async () => {
  await writeImage(layout, [byZstd(FIRST)]);
  const files = await readFiles(layout);
  const [inside = ""] = files.about.rootfs.diff_ids;
  const stored = { mediaType: "application/vnd.oci.image.layer.v1.tar", digest: inside, size: 1 };
  files.image.layers.push(stored);
  files.about.rootfs.diff_ids.push(inside);
  await writePlainManifest(files, plain);
  expect(readFileSync(join(plain, "layers"), "utf8")).toBe("");
});

test("an image without zstd layers is unchanged", async () => {
  await writeImage(layout, [FIRST]);
  await writePlainManifest(await readFiles(layout), plain);
  expect(existsSync(plain)).toBe(false);
});

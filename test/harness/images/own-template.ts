/** Templates that one daemon has for itself, to be damaged or removed. */
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { SHARED_TEMPLATES, type TestDaemon } from "../daemon.ts";

/** `changed` is a copy, the other files are the shared template's. Returns its directory. */
export function ownTemplate({ dataDir }: TestDaemon, changed = ""): string {
  rmSync(join(dataDir, "templates"));
  const shared = join(SHARED_TEMPLATES, "default");
  const version = readlinkSync(join(shared, "current"));
  const own = join(dataDir, "templates", "default", version);
  mkdirSync(own, { recursive: true });
  symlinkSync(version, join(dataDir, "templates", "default", "current"));
  for (const name of readdirSync(join(shared, version))) {
    const from = join(shared, version, name);
    if (name === changed || name === "manifest.json") copySparse(from, join(own, name));
    else symlinkSync(from, join(own, name));
  }
  return own;
}

/** A copy of the shared template that is an organization's own, all but the root, which is a link to the shared one. Returns its directory. */
export function orgTemplate({ dataDir }: TestDaemon, orgId: string, templateId: string): string {
  const shared = join(SHARED_TEMPLATES, "default");
  const version = readlinkSync(join(shared, "current"));
  const home = join(dataDir, "org-templates", orgId, templateId);
  const own = join(home, version);
  mkdirSync(own, { recursive: true });
  for (const path of [dirname(dirname(home)), dirname(home), home, own]) chmodSync(path, 0o711);
  symlinkSync(version, join(home, "current"));
  for (const name of readdirSync(join(shared, version))) {
    const from = join(shared, version, name);
    if (name === "root.qcow2") symlinkSync(from, join(own, name));
    else copySparse(from, join(own, name));
  }
  // Sandboxes find it again by the name that it has itself.
  const manifest = JSON.parse(readFileSync(join(own, "manifest.json"), "utf8"));
  manifest.record.template_id = templateId;
  writeFileSync(join(own, "manifest.json"), JSON.stringify(manifest));
  return own;
}

/** The snapshot's memory is far larger than its content. */
function copySparse(from: string, to: string): void {
  const { exitCode, stderr } = Bun.spawnSync(["cp", "--sparse=always", from, to]);
  if (exitCode !== 0) throw new Error(`no copy of ${from}: ${stderr}`);
}

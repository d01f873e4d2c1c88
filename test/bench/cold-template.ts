/** Owns a copy of the template that all tests share whose snapshot every daemon refuses: sandboxes of it boot cold. */
import { mkdirSync, readdirSync, readFileSync, realpathSync, symlinkSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { SHARED_TEMPLATES } from "../harness/daemon.ts";

const TEMPLATE = "default";
const MANIFEST = "manifest.json";

/** Lays the copy into a data directory. Only the manifest is one of its own; the other files are links. */
export function layColdTemplate(dataDir: string): void {
  const shared = realpathSync(join(SHARED_TEMPLATES, TEMPLATE, "current"));
  const home = join(dataDir, "templates", TEMPLATE);
  const version = join(home, basename(shared));
  mkdirSync(version, { recursive: true });
  for (const name of readdirSync(shared)) {
    if (name !== MANIFEST) symlinkSync(join(shared, name), join(version, name));
  }
  const manifest = JSON.parse(readFileSync(join(shared, MANIFEST), "utf8")) as { qemu_version: string };
  // No QEMU loads what another version has saved.
  writeFileSync(join(version, MANIFEST), JSON.stringify({ ...manifest, qemu_version: `not ${manifest.qemu_version}` }));
  symlinkSync(basename(version), join(home, "current"));
}

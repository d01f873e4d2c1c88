/** Index of the files of this host's templates by their content, across all templates and versions. */
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { Value } from "@sinclair/typebox/value";
import type { Paths } from "../../core/config/paths.ts";
import { namesIn } from "../../host/files/gone.ts";
import { manifest } from "./manifest.ts";
import { MANIFEST_FILE } from "./registry.ts";

type TemplatePaths = Pick<Paths, "templates" | "org_templates" | "templates_of">;

/** Path of each file, by digest. Incomplete or missing files are left out. */
export async function templateFiles(paths: TemplatePaths): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const owner of [null, ...(await namesIn(paths.org_templates))]) {
    const home = paths.templates_of(owner);
    for (const templateId of await namesIn(home)) {
      for (const version of await namesIn(join(home, templateId))) {
        for (const [digest, path] of filesIn(join(home, templateId, version))) found.set(digest, path);
      }
    }
  }
  return found;
}

function filesIn(directory: string): [string, string][] {
  try {
    const value: unknown = JSON.parse(readFileSync(join(directory, MANIFEST_FILE), "utf8"));
    if (!Value.Check(manifest, value)) return [];
    return Object.values(value.files).flatMap(({ name, digest, size_bytes }): [string, string][] => {
      const path = join(directory, name);
      return statSync(path, { throwIfNoEntry: false })?.size === size_bytes ? [[digest, path]] : [];
    });
  } catch {
    return [];
  }
}

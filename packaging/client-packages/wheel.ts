/** The Python SDK as a wheel (PEP 427), built without pip: its sources, its metadata from pyproject.toml, and the record of their hashes. */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "smol-toml";
import { type Files, zip } from "./archive.ts";

interface PyProject {
  project: { name: string; description: string; "requires-python": string; license: { text: string } };
}

/** `root` is the top of the repository. */
export function wheel(root: string, version: string): { name: string; bytes: Uint8Array } {
  const sdk = join(root, "sdk/python");
  const { project } = parse(readFileSync(join(sdk, "pyproject.toml"), "utf8")) as unknown as PyProject;
  const info = `${project.name}-${version}.dist-info`;
  const files: Files = {
    ...sources(join(sdk, "src"), project.name),
    [`${info}/METADATA`]: [
      "Metadata-Version: 2.1",
      `Name: ${project.name}`,
      `Version: ${version}`,
      `Summary: ${project.description}`,
      `License: ${project.license.text}`,
      `Requires-Python: ${project["requires-python"]}`,
      "Description-Content-Type: text/markdown",
      "",
      readFileSync(join(sdk, "README.md"), "utf8"),
    ].join("\n"),
    [`${info}/WHEEL`]: "Wheel-Version: 1.0\nGenerator: roomd\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    [`${info}/LICENSE`]: readFileSync(join(root, "LICENSE")),
    [`${info}/top_level.txt`]: `${project.name}\n`,
  };
  const record = Object.entries(files).map(([path, content]) => {
    const bytes = Buffer.from(content as string);
    return `${path},sha256=${createHash("sha256").update(bytes).digest("base64url")},${bytes.byteLength}`;
  });
  files[`${info}/RECORD`] = [...record, `${info}/RECORD,,`, ""].join("\n");
  return { name: `${project.name}-${version}-py3-none-any.whl`, bytes: zip(files) };
}

/** The modules of a package and its marker py.typed, by their paths beneath `directory`. */
function sources(directory: string, package_: string): Files {
  const found: Files = {};
  const entries = readdirSync(join(directory, package_), { withFileTypes: true });
  for (const entry of entries.sort((one, other) => (one.name < other.name ? -1 : 1))) {
    const path = `${package_}/${entry.name}`;
    if (entry.isDirectory() && entry.name !== "__pycache__") Object.assign(found, sources(directory, path));
    else if (/\.py$|^py\.typed$/.test(entry.name)) found[path] = readFileSync(join(directory, path));
  }
  return found;
}

/** Owns how an image is named, and where it is: in a registry, or in a file or directory of this host. */
import { isAbsolute } from "node:path";

/** As skopeo names them. What is not in a registry is named by an absolute path. */
export const REFERENCE_PATTERN =
  "^(docker://[A-Za-z0-9][A-Za-z0-9._:/@-]{0,511}|(oci|docker-archive):/[^\\u0000-\\u001f]{0,1023})$";

const LOCAL = /^(?<transport>oci|docker-archive):(?<path>[^:]*)(?<name>:.*)?$/;

/** What is in a file or a directory of this host, with the image's name in it. */
export interface LocalImage {
  transport: string;
  path: string;
  /** ":name", or nothing where there is but one. */
  name: string;
}

/** Null for one in a registry. */
export function localImage(reference: string): LocalImage | null {
  const { transport = "", path = "", name = "" } = LOCAL.exec(reference)?.groups ?? {};
  return transport !== "" && isAbsolute(path) ? { transport, path, name } : null;
}

/** The repository of one in a registry, without tag and digest. */
export function repositoryOf(reference: string): string {
  const [named = ""] = reference.split("@", 1);
  const colon = named.lastIndexOf(":");
  return colon > named.lastIndexOf("/") ? named.slice(0, colon) : named;
}

/** The registry of one there, by host and port; null where it is named without. */
export function registryOf(reference: string): string | null {
  const [, first = ""] = /^docker:\/\/([^/]+)\//.exec(reference) ?? [];
  return /[.:]/.test(first) || first === "localhost" ? first : null;
}

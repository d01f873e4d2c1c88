/** References of images, and their location: in a registry, or in a file or directory of this host. */
import { isAbsolute } from "node:path";

/** In skopeo's syntax. An image outside of a registry has an absolute path. */
export const REFERENCE_PATTERN =
  "^(docker://[A-Za-z0-9][A-Za-z0-9._:/@-]{0,511}|(oci|docker-archive):/[^\\u0000-\\u001f]{0,1023})$";

const LOCAL = /^(?<transport>oci|docker-archive):(?<path>[^:]*)(?<name>:.*)?$/;

/** An image in a file or a directory of this host. */
export interface LocalImage {
  transport: string;
  path: string;
  /** ":name", or empty if there is only one. */
  name: string;
}

/** A local image; null for a reference to a registry. */
export function localImage(reference: string): LocalImage | null {
  const { transport = "", path = "", name = "" } = LOCAL.exec(reference)?.groups ?? {};
  return transport !== "" && isAbsolute(path) ? { transport, path, name } : null;
}

/** Repository of a reference to a registry, without tag and digest. */
export function repositoryOf(reference: string): string {
  const [named = ""] = reference.split("@", 1);
  const colon = named.lastIndexOf(":");
  return colon > named.lastIndexOf("/") ? named.slice(0, colon) : named;
}

/** The registry of such a reference, by host and port; null if it names none. */
export function registryOf(reference: string): string | null {
  const [, first = ""] = /^docker:\/\/([^/]+)\//.exec(reference) ?? [];
  return /[.:]/.test(first) || first === "localhost" ? first : null;
}

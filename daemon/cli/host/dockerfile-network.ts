/**
 * Detects RUN lines of a Dockerfile that use the network although no host is allowed, to warn before a build that would fail minutes later.
 */
import { readFileSync } from "node:fs";

/** Programs that download, at the start of a command. */
const FETCHES =
  /(?:^|&&|\|\||;|\|)\s*(?:sudo\s+)?((?:apt-get|apt|apk|dnf|yum|microdnf|zypper)\s+(?:-\S+\s+)*(?:update|upgrade|install|add)|(?:python3?\s+-m\s+)?pip3?\s+install|uv\s+(?:pip|sync|add)|(?:npm|pnpm|yarn|bun)\s+(?:ci|install|i|add)|cargo\s+(?:install|build|fetch)|go\s+(?:get|install|mod)|gem\s+install|curl|wget|git\s+clone)\b/;

/** The first command of a RUN line that downloads, or null. */
export function fetchIn(dockerfile: string): string | null {
  // A backslash continues a line; comment lines in between are skipped.
  const text = dockerfile.replaceAll(/^\s*#.*\n/gm, "").replaceAll(/\\\s*\n/g, " ");
  for (const [, command = ""] of text.matchAll(/^\s*RUN\s+(?:--\S+\s+)*(.*)$/gim)) {
    const found = FETCHES.exec(command.trim())?.[1];
    if (found) return found.replaceAll(/\s+/g, " ");
  }
  return null;
}

/** The warning about a Dockerfile, or null. The build reports a file that cannot be read. */
export function fetchWarning(dockerfile: string): string | null {
  let command: string | null;
  try {
    command = fetchIn(readFileSync(dockerfile, "utf8"));
  } catch {
    return null;
  }
  if (command === null) return null;
  return `RUN ${command}: no host is allowed, so it will fail. Allow its sources, such as --egress deb.debian.org.`;
}

/** In place of ../own-host.ts: a client has no configuration of a service, and uses the default address. */

export function ownService(_env: Record<string, string | undefined>): { url: string; caFile: string | null } {
  return { url: "http://127.0.0.1:8080", caFile: null };
}

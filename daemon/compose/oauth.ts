/** Owns the authorization server as it is put together: applications that people sign in, and how they make themselves known. */
import { makeOAuth } from "../domain/oauth/index.ts";
import type { Base } from "./base.ts";
import type { Orgs } from "./orgs.ts";

/** `url` is where clients reach the service. */
export function composeOAuth(
  { config, log, directory: { database } }: Base,
  { orgs, changes }: Orgs,
  url: () => string,
) {
  const hosts = config["oauth.document_hosts"].split(",").flatMap((host) => host.trim() || []);
  return makeOAuth({ database, changes, orgs, log, url, documents: config["oauth.documents"] ? hosts : null });
}

/** Composition of the authorization server: applications that people sign in, and their client metadata. */
import { makeOAuth } from "../domain/oauth/index.ts";
import type { Base } from "./base.ts";
import type { Orgs } from "./orgs.ts";

/** `url`: the service's address for clients. */
export function composeOAuth(
  { config, log, directory: { database } }: Base,
  { orgs, changes }: Orgs,
  url: () => string,
) {
  const hosts = config["oauth.document_hosts"].split(",").flatMap((host) => host.trim() || []);
  return makeOAuth({ database, changes, orgs, log, url, documents: config["oauth.documents"] ? hosts : null });
}

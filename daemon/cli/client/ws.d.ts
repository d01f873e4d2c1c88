/** What the client uses of the package ws, whose types are a package of their own. */
declare module "ws" {
  const WebSocketOfNode: new (url: string, options: { headers: Record<string, string>; ca?: string }) => WebSocket;
  export default WebSocketOfNode;
}

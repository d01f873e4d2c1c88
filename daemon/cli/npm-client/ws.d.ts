/** Types for the part of the package ws that the client uses. */
declare module "ws" {
  const WebSocketOfNode: new (url: string, options: { headers: Record<string, string>; ca?: string }) => WebSocket;
  export default WebSocketOfNode;
}
